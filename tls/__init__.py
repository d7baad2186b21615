"""Certificates: authority, leaf, rotation."""
