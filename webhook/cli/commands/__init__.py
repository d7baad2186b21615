"""One module per command; each offers `command`."""
