"""`numalign serve`: the webhook."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.inputs import config_options, fail
from webhook.server.settings import ServeError, Settings

_FILE = click.Path(path_type=Path, dir_okay=False)
_DEFAULTS = Settings()


@click.command("serve")
@config_options
@click.option(
    "--demo", is_flag=True, help="Make a certificate, use the built-in classes if you name none, post a few reviews, stay up."
)
@click.option("--host", help="Address to listen on. Default: all; in a demo 127.0.0.1.")
@click.option("--port", default=_DEFAULTS.port, show_default=True, help="Port of the webhook (TLS).")
@click.option("--metrics-port", default=_DEFAULTS.metrics_port, show_default=True, help="Port of /metrics, /healthz, /readyz.")
@click.option("--cert", type=_FILE, metavar="FILE", help="PEM file of the serving certificate; re-read when it changes.")
@click.option("--key", type=_FILE, metavar="FILE", help="PEM file of its key.")
@click.option("--client-ca", type=_FILE, metavar="FILE", help="PEM authorities of the only clients that are answered.")
@click.option("--threads", default=_DEFAULTS.threads, show_default=True, help="Requests handled at once.")
@click.option("--drain-file", type=_FILE, metavar="FILE", help="Once it exists, answer /readyz with 503 and close connections.")
@click.option("--drift-file", type=_FILE, metavar="FILE", help="What `certs keep` writes about the registered webhooks.")
@click.option("--limits-file", type=_FILE, metavar="FILE", help="What `certs keep` writes about the cluster's LimitRanges.")
@click.option("--lookup-claims", type=_FILE, metavar="SOCKET", help="Where `certs keep` reads the claims that pods refer to.")
@click.option("--reload-seconds", default=_DEFAULTS.reload_seconds, show_default=True, help="Between looks at the files.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default=_DEFAULTS.log_level, show_default=True
)
@click.option("--echo", is_flag=True, help="Also serve /echo, to measure against.")
def command(policy_file: Path | None, class_paths: tuple[Path, ...], host: str | None, demo: bool, **options: object) -> None:
    """Serve the webhook until SIGTERM or SIGINT.

    Node classes are those of --classes and the built-in ones that the policy names.
    """
    from webhook import server  # noqa: PLC0415

    address = host if host is not None else "127.0.0.1" if demo else _DEFAULTS.host
    settings = Settings(policy=policy_file, classes=class_paths, host=address, demo=demo, **options)  # type: ignore[arg-type]
    try:
        server.run(settings)
    except ServeError as error:
        fail([error])
