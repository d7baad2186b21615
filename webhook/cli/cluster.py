"""The options of commands that talk to a cluster, and what they connect to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from webhook.cli.inputs import fail

if TYPE_CHECKING:
    from webhook.cluster.authority import AuthoritySecret
    from webhook.cluster.bundles import Configurations

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Place:
    """Where the authority's Secret and the webhook configurations are."""

    secret: AuthoritySecret
    configurations: Configurations


def cluster_options(command: Command) -> Callable[..., Any]:
    """Add `--kubeconfig` and the names of our objects; the command gets a `place` instead."""

    @click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Default: the cluster that this runs in, else kubectl's.",
    )
    @click.option("--namespace", default="numalign-system", show_default=True, help="Namespace of Secret and Service.")
    @click.option("--secret", default="numalign-authority", show_default=True, help="Name of the authority's Secret.")
    @click.option("--configuration", default="numalign", show_default=True, help="Name of both webhook configurations.")
    @wraps(command)
    def connected(kubeconfig: Path | None, namespace: str, secret: str, configuration: str, **options: Any) -> Any:
        return command(place=_connect(kubeconfig, namespace, secret, configuration), **options)

    return connected


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Turn a failed call into a line on stderr and exit code 2."""
    from webhook.cluster.errors import ClusterError  # noqa: PLC0415

    try:
        yield
    except ClusterError as error:
        fail([error])


def _connect(kubeconfig: Path | None, namespace: str, secret: str, configuration: str) -> Place:
    from webhook.cluster.api import connect  # noqa: PLC0415
    from webhook.cluster.authority import AuthoritySecret  # noqa: PLC0415
    from webhook.cluster.bundles import Configurations  # noqa: PLC0415

    with cluster_errors():
        api = connect(kubeconfig)
    return Place(AuthoritySecret(api, namespace, secret), Configurations(api, configuration))
