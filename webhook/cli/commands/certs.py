"""`numalign certs`: the authority that signs the webhook's certificates, and what the API server trusts."""

from __future__ import annotations

import datetime as dt
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from webhook.cli.inputs import Exit, fail, output_option
from webhook.cli.output import emit, table

if TYPE_CHECKING:
    from cryptography import x509
    from rich.console import RenderableType

    from tls.rotation import Authority, Lives
    from webhook.cluster.api import Api
    from webhook.cluster.authority import AuthoritySecret, Stored
    from webhook.cluster.bundles import Configurations
    from webhook.cluster.keeper import Keeper

Command = TypeVar("Command", bound=Callable[..., Any])

ROUND_SECONDS: Final = 5.0
_DAY: Final = 86400


@click.group("certs")
def command() -> None:
    """Certificates: set up, show and rotate the authority; keep a replica's certificate."""


def _cluster_options(command: Command) -> Command:
    """Add where the Secret and the configurations are."""
    options = (
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Default: in-cluster."
        ),
        click.option("--namespace", default="numalign-system", show_default=True, help="Namespace of Secret and Service."),
        click.option("--secret", default="numalign-authority", show_default=True, help="Name of the authority's Secret."),
        click.option("--configuration", default="numalign", show_default=True, help="Name of both webhook configurations."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@command.command("init")
@_cluster_options
@click.option("--replace", is_flag=True, help="Put a new authority in place of what is there, at once.")
def init(replace: bool, **where: Any) -> None:
    """Make the authority where there is none, and have the registered webhook configurations trust it.

    `keep`, which runs beside each replica, does the same; this is for clusters where it may not create Secrets, and for a Secret
    that was damaged.
    """
    secret, configurations = _cluster(**where)
    with _cluster_errors():
        if replace:
            _delete(secret)
        stored = secret.agree(_new_authority)
        configurations.apply(stored.authority.trusted)
    click.echo(f"Secret {secret.namespace}/{secret.name}: the authority is valid until {_day(stored.authority.current.cert)}")


@command.command("show")
@_cluster_options
@output_option()
def show(fmt: str, **where: Any) -> None:
    """Show the authority, its rotation, and whether the webhook configurations trust it.

    Exits with 1 where they do not.
    """
    from webhook.cluster.bundles import trusts  # noqa: PLC0415

    secret, configurations = _cluster(**where)
    with _cluster_errors():
        authority = _existing(secret).authority
        registered = configurations.registered()
    trusted = {each["kind"]: trusts([each], authority.trusted) for each in registered}
    data = {"authority": _rows(authority), "trusted": trusted}
    emit(data, fmt, lambda: _page(data))
    raise SystemExit(Exit.FITS if all(trusted.values()) else Exit.REFUSED)


@command.command("rotate")
@_cluster_options
def rotate(**where: Any) -> None:
    """Announce a new authority. The replicas switch to it once every client trusts it, a minute or so later."""
    from tls import rotation  # noqa: PLC0415

    secret, configurations = _cluster(**where)
    with _cluster_errors():
        stored = _existing(secret)
        following = rotation.announce(stored.authority, _now(), rotation.Lives())
        if following is stored.authority:
            click.echo("a rotation is under way already")
            return
        secret.save(stored, following)
        configurations.apply(following.trusted)
    click.echo("a new authority is announced; `numalign certs show` tells how far its rotation is")


@command.command("keep")
@_cluster_options
@click.option("--dir", "directory", required=True, type=click.Path(path_type=Path, file_okay=False), help="For tls.crt, tls.key.")
@click.option("--host", "hosts", multiple=True, help="Name or address in the certificate. Default: the Service's names.")
@click.option("--service", default="numalign", show_default=True, help="Name of the Service.")
@click.option("--every", default=ROUND_SECONDS, show_default=True, help="Seconds between rounds.")
@click.option("--leaf-days", default=7.0, show_default=True, help="Life of the serving certificate; renewed at two thirds of it.")
@click.option(
    "--authority-days", default=365.0, show_default=True, help="Life of an authority; followed by another at two thirds."
)
@click.option("--settle", default=60.0, show_default=True, help="Seconds that a new authority is trusted before it signs.")
@click.option("--once", is_flag=True, help="One round.")
def keep(
    directory: Path,
    hosts: tuple[str, ...],
    service: str,
    every: float,
    leaf_days: float,
    authority_days: float,
    settle: float,
    once: bool,
    **where: Any,
) -> None:
    """Keep a replica's serving certificate in a directory, and the authority and its trust with the other replicas.

    Runs until SIGTERM. What it does is logged as JSON, one line each.
    """
    from tls.files import PairFiles  # noqa: PLC0415
    from webhook.cluster.keeper import Keeper  # noqa: PLC0415

    secret, configurations = _cluster(**where)
    names = hosts or service_hosts(service, secret.namespace)
    lives = _lives(leaf_days, authority_days, settle)
    keeper = Keeper(secret, configurations, names, PairFiles(directory), lives)
    if not _keep(keeper, 0.0 if once else every):
        raise SystemExit(Exit.REFUSED)


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a Service: the API server asks for the second one."""
    return (f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")


def _keep(keeper: Keeper, every: float) -> bool:
    """Do rounds until a signal, or one where `every` is 0; tell whether the last went well."""
    from webhook.server import logs  # noqa: PLC0415

    logs.configure()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while True:
        done = _round(keeper)
        if every == 0 or stop.wait(0.1 if done else every):
            return done is not None


def _round(keeper: Keeper) -> tuple[str, ...] | None:
    """Return what a round did; None where it failed. The next one tries again: a server with an old certificate is no outage."""
    from webhook.cluster.api import ClusterError  # noqa: PLC0415
    from webhook.server import logs  # noqa: PLC0415

    log = logs.logger("certs")
    try:
        done = keeper.round(_now())
    except (ClusterError, OSError) as error:
        log.warning("not done", problem=str(error))
        return None
    for sentence in done:
        log.info(sentence)
    return done


def _lives(leaf_days: float, authority_days: float, settle: float) -> Lives:
    from tls.rotation import Lives  # noqa: PLC0415

    return Lives(dt.timedelta(days=authority_days), dt.timedelta(days=leaf_days), dt.timedelta(seconds=settle))


def _new_authority() -> Authority:
    from tls import rotation  # noqa: PLC0415

    return rotation.new_authority(_now(), rotation.Lives())


def _cluster(kubeconfig: Path | None, namespace: str, secret: str, configuration: str) -> tuple[AuthoritySecret, Configurations]:
    from webhook.cluster.authority import AuthoritySecret  # noqa: PLC0415
    from webhook.cluster.bundles import Configurations  # noqa: PLC0415

    api = _connect(kubeconfig)
    return AuthoritySecret(api, namespace, secret), Configurations(api, configuration)


def _connect(kubeconfig: Path | None) -> Api:
    from webhook.cluster.api import connect  # noqa: PLC0415  40 MB, only for those who talk to a cluster

    with _cluster_errors():
        return connect(kubeconfig)


@contextmanager
def _cluster_errors() -> Iterator[None]:
    """Turn a failed call into a line on stderr and exit code 2."""
    from webhook.cluster.api import ClusterError  # noqa: PLC0415

    try:
        yield
    except ClusterError as error:
        fail([error])


def _existing(secret: AuthoritySecret) -> Stored:
    stored = secret.read()
    if stored is None:
        fail([f"there is no Secret {secret.namespace}/{secret.name}; `numalign certs init` makes it"])
    return stored


def _delete(secret: AuthoritySecret) -> None:
    from webhook.cluster.api import ClusterError  # noqa: PLC0415

    try:
        secret.delete()
    except ClusterError as error:
        if not error.is_missing:
            raise


def _rows(authority: Authority) -> list[dict[str, str]]:
    from tls.rotation import renewal  # noqa: PLC0415

    named = {"current": authority.current.cert, "next": authority.next.cert if authority.next else None}
    certs = {**named, "previous": authority.previous}
    return [
        {"role": role, "serial": f"{cert.serial_number:x}", "until": _day(cert), "renewal": f"{renewal(cert):%Y-%m-%d %H:%M} UTC"}
        for role, cert in certs.items()
        if cert is not None
    ]


def _page(data: dict[str, Any]) -> Iterator[RenderableType]:
    yield table(("authority", "serial", "valid until", "renewed from"), [tuple(row.values()) for row in data["authority"]])
    words = {True: "trusts it", False: "[red]does not trust it (yet): its calls fail[/]"}
    yield table(("configuration", ""), [(kind, words[trusted]) for kind, trusted in data["trusted"].items()])
    if not data["trusted"]:
        yield "No webhook configuration is registered: no pod reaches the webhook."


def _day(cert: x509.Certificate) -> str:
    return f"{cert.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
