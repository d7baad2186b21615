"""The command `numalign`."""
