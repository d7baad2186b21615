"""`numalign version`."""

from __future__ import annotations

import platform
from importlib.metadata import version

import click

from webhook.cli.inputs import config_options, output_option
from webhook.cli.output import emit
from webhook.core.model import MINORS


@click.command("version")
@config_options
@output_option()
def command(fmt: str, **_: object) -> None:
    """Print the version, and the Kubernetes minors whose rules are known."""
    data = {
        "numalign": version("numalign"),
        "kubernetes": [f"1.{minor}" for minor in MINORS],
        "python": platform.python_version(),
    }
    emit(data, fmt, lambda: [f"numalign {data['numalign']} (Kubernetes 1.{MINORS[0]} to 1.{MINORS[-1]})"])
