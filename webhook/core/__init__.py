"""The pure core: dicts and frozen dataclasses in, decisions out. No I/O, no clock, no framework."""
