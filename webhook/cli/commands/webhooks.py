"""`numalign webhooks`: the webhook configurations for a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.inputs import config_options, fail, load_policy, output_option
from webhook.cli.output import emit, table
from webhook.core.webhookconfig import Endpoint, configurations

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("webhooks")
@config_options
@output_option(default="yaml")
@click.option("--namespace", default="numalign-system", show_default=True, help="Namespace of the webhook's Service.")
@click.option("--service", default="numalign", show_default=True, help="Name of the webhook's Service.")
@click.option("--port", default=443, show_default=True, help="Port of the webhook's Service.")
@click.option("--url", default="", help="Base URL, for a webhook that runs outside of the cluster; replaces the Service.")
def command(policy_file: Path | None, fmt: str, namespace: str, service: str, port: int, url: str, **_: object) -> None:
    """Print the Mutating- and the ValidatingWebhookConfiguration for a policy.

    They carry no caBundle; the webhook applies it itself.
    """
    from webhook.config.catalogue import load_catalogue  # noqa: PLC0415

    if url and not url.startswith("https://"):
        fail([f"--url {url}: an API server calls https:// only"])
    policy = load_policy(policy_file)
    made = configurations(policy, load_catalogue(policy), Endpoint(namespace, service, port, url))
    emit(list(made), fmt, lambda: [_table(each) for each in made])


def _table(configuration: dict[str, Any]) -> RenderableType:
    rows = [
        (w["name"], _path(w["clientConfig"]), w["failurePolicy"], f"{w['timeoutSeconds']} s", _conditions(w))
        for w in configuration["webhooks"]
    ]
    return table(("entry", "path", "failure", "timeout", "conditions"), rows, title=configuration["kind"])


def _path(client: dict[str, Any]) -> str:
    return str(client["url"] if "url" in client else client["service"]["path"])


def _conditions(webhook: dict[str, Any]) -> str:
    return ", ".join(condition["name"] for condition in webhook["matchConditions"])
