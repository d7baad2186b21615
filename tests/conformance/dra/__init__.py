"""Claims against the scheduler's own allocator and the API server's own validation."""
