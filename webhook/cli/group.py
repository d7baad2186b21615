"""The command group. A command's module is imported when the command runs, so that `serve` carries none of the others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click

COMMANDS: Final[Mapping[str, str]] = {
    "certs": "Certificates: set up, show and rotate the authority; keep a replica's.",
    "classes": "Node classes: list them, show one, check files.",
    "explain": "Say what becomes of the pods in a manifest, per node class.",
    "policy": "Policy files: check one.",
    "review": "Answer AdmissionReviews as the server would.",
    "serve": "Serve the webhook.",
    "verdict": "Judge pods on node classes, JSON lines in and out.",
    "version": "Print the version.",
    "webhooks": "Print the webhook configurations for a policy.",
}
"""Command -> its line in the help; a command lives in the module of the same name."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports them on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands' names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"webhook.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="numalign", message="%(prog)s %(version)s")
def numalign() -> None:
    """Make GPU pods alignable to one NUMA node, or say why they cannot be.

    Exit codes: 0 it fits, 1 something is refused, 2 the input is bad.
    """
