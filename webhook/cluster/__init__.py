"""Everything that talks to an API server."""
