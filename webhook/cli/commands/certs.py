"""`numalign certs`: the authority that signs the webhook's certificates, and what the API server trusts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.cluster import Place, cluster_errors, cluster_options
from webhook.cli.inputs import Exit, fail, output_option
from webhook.cli.keep import keep
from webhook.cli.output import emit, table

if TYPE_CHECKING:
    from cryptography import x509
    from rich.console import RenderableType

    from tls.rotation import Authority
    from webhook.cluster.authority import AuthoritySecret, Stored


@click.group("certs")
def command() -> None:
    """Certificates: set up, show and rotate the authority; keep a replica's certificate."""


command.add_command(keep)


@command.command("init")
@cluster_options
@click.option("--replace", is_flag=True, help="Put a new authority in place of what is there, at once.")
def init(place: Place, replace: bool) -> None:
    """Make the authority where there is none, and have the registered webhook configurations trust it.

    `keep`, which runs beside each replica, does the same; this is for clusters where it may not create Secrets, and for a Secret
    that was damaged.
    """
    with cluster_errors():
        if replace:
            place.secret.overwrite(_new_authority())
        stored = place.secret.agree(_new_authority)
        place.configurations.apply(stored.authority.trusted)
    click.echo(
        f"Secret {place.secret.namespace}/{place.secret.name}: the authority is valid until {_day(stored.authority.current.cert)}"
    )


@command.command("show")
@cluster_options
@output_option()
def show(place: Place, fmt: str) -> None:
    """Show the authority, its rotation, and whether the webhook configurations trust it.

    Exits with 1 where they do not.
    """
    from webhook.cluster.bundles import trusts  # noqa: PLC0415

    with cluster_errors():
        authority = _existing(place.secret).authority
        registered = place.configurations.registered()
    trusted = {each["kind"]: trusts([each], authority.trusted) for each in registered}
    data = {"authority": _rows(authority), "trusted": trusted}
    emit(data, fmt, lambda: _page(data))
    raise SystemExit(Exit.FITS if all(trusted.values()) else Exit.REFUSED)


@command.command("rotate")
@cluster_options
def rotate(place: Place) -> None:
    """Announce a new authority. The replicas switch to it once every client trusts it, a minute or so later."""
    from tls import rotation  # noqa: PLC0415

    with cluster_errors():
        stored = _existing(place.secret)
        following = rotation.announce(stored.authority, _now(), rotation.Lives())
        if following is stored.authority:
            click.echo("a rotation is under way already")
            return
        place.secret.save(stored, following)
        place.configurations.apply(following.trusted)
    click.echo("a new authority is announced; `numalign certs show` tells how far its rotation is")


def _new_authority() -> Authority:
    from tls import rotation  # noqa: PLC0415

    return rotation.new_authority(_now(), rotation.Lives())


def _existing(secret: AuthoritySecret) -> Stored:
    stored = secret.read()
    if stored is None:
        fail([f"there is no Secret {secret.namespace}/{secret.name}; `numalign certs init` makes it"])
    return stored


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
