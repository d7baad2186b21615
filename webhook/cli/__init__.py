"""The command `numalign`."""

from __future__ import annotations


def main() -> None:
    """Run the command line; exit codes: 0 it fits, 1 it is refused, 2 the input is bad."""
    from webhook.cli.group import numalign  # noqa: PLC0415  importing the package must not cost click

    numalign()
