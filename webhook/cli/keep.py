"""`numalign certs keep`: what runs beside each replica, with the credentials that the server itself does not have."""

from __future__ import annotations

import datetime as dt
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.cluster import Place, cluster_options
from webhook.cli.inputs import Exit

if TYPE_CHECKING:
    from webhook.cluster.keeper import Keeper

ROUND_SECONDS: Final = 5.0
ROUNDS_PER_LOOK: Final = 12
"""Rounds between comparisons of what is registered with the policy, which has to be read for it."""

ROUNDS_PER_LIST: Final = 3
"""Rounds between two lists of the cluster's devices."""

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("keep")
@cluster_options
@click.option("--dir", "directory", required=True, type=click.Path(path_type=Path, file_okay=False), help="For tls.crt, tls.key.")
@click.option("--host", "hosts", multiple=True, help="Name or address in the certificate. Default: the Service's names.")
@click.option("--service", default="numalign", show_default=True, help="Name of the Service.")
@click.option("--policy", "policy_file", type=_FILE, metavar="FILE", help="What the registered webhooks are compared with.")
@click.option("--drift-file", type=_FILE, metavar="FILE", help="Where their differences are written, one a line.")
@click.option("--devices-file", type=_FILE, metavar="FILE", help="Where the cluster's DRA devices are written.")
@click.option("--limits-file", type=_FILE, metavar="FILE", help="Where the cluster's LimitRanges are written.")
@click.option("--claims-socket", type=_FILE, metavar="SOCKET", help="Where single claims and templates are read for the server.")
@click.option("--every", default=ROUND_SECONDS, show_default=True, help="Seconds between rounds.")
@click.option("--leaf-days", default=7.0, show_default=True, help="Life of the serving certificate; renewed at two thirds of it.")
@click.option(
    "--authority-days", default=365.0, show_default=True, help="Life of an authority; followed by another at two thirds."
)
@click.option("--settle", default=60.0, show_default=True, help="Seconds that a new authority is trusted before it signs.")
@click.option("--once", is_flag=True, help="One round, of what is written in rounds.")
def keep(place: Place, every: float, once: bool, **options: Any) -> None:
    """Keep a replica's serving certificate in a directory, and the authority and its trust with the other replicas.

    Runs until SIGTERM. What it does is logged as JSON, one line each.
    """
    from webhook.server import logs  # noqa: PLC0415

    logs.configure()
    rounds = _Rounds(place, options)
    if once:
        raise SystemExit(Exit.REFUSED if rounds.next() is None else Exit.FITS)
    _start_readers(place, options)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.wait(0.1 if rounds.next() else every):
        continue


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a Service: the API server asks for the second one."""
    return (f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")


def _start_readers(place: Place, options: Mapping[str, Any]) -> None:
    """Start what tells the server of the cluster between rounds, in threads that end with the process."""
    from webhook.cluster.claims import DEADLINE  # noqa: PLC0415
    from webhook.cluster.limits import LimitsFile  # noqa: PLC0415
    from webhook.cluster.relay import Relay  # noqa: PLC0415
    from webhook.server import logs  # noqa: PLC0415

    log, api = logs.logger("certs"), place.secret.api
    if options["limits_file"] is not None:
        LimitsFile(api, options["limits_file"], lambda error: log.warning("LimitRanges not read", problem=str(error))).start()
    if options["claims_socket"] is not None:
        try:
            Relay(api, options["claims_socket"], DEADLINE).start()
        except OSError as error:  # certificates are kept all the same
            log.warning("claims cannot be asked for", problem=str(error))


class _Rounds:
    """Round after round of a keeper, and a look at what is registered."""

    def __init__(self, place: Place, options: Mapping[str, Any]) -> None:
        from webhook.server import logs  # noqa: PLC0415

        self._place, self._options = place, options
        self._keeper = _keeper(place, options)
        self._log = logs.logger("certs")
        self._told: tuple[str, ...] = ()
        self._until_look = self._until_devices = 0

    def next(self) -> bool | None:
        """Do a round and tell whether it changed anything; None: it failed. A server with an old certificate is no outage."""
        from webhook.cluster.errors import ClusterError  # noqa: PLC0415

        try:
            self._write_devices()
            done = self._keeper.round(dt.datetime.now(dt.UTC))
            self._look()
        except (ClusterError, OSError) as error:
            self._log.warning("not done", problem=str(error))
            return None
        for sentence in done:
            self._log.info(sentence)
        return bool(done)

    def _write_devices(self) -> None:
        """Write the cluster's DRA devices. Without the file the server would not start, so there is always one, and first."""
        from webhook.cluster import devices  # noqa: PLC0415
        from webhook.cluster.errors import ClusterError  # noqa: PLC0415
        from webhook.cluster.files import replace  # noqa: PLC0415

        file, self._until_devices = self._options["devices_file"], self._until_devices - 1
        if file is None or self._until_devices > 0:
            return
        self._until_devices = ROUNDS_PER_LIST
        try:
            if devices.write(self._place.secret.api, file):
                self._log.info("wrote the cluster's devices")
        except ClusterError as error:
            self._log.warning("devices not written", problem=str(error))
            if not file.exists():
                replace(file, devices.listing((), ()))

    def _look(self) -> None:
        """Write how the registered webhooks differ from the policy's, and log it when it changes."""
        file, self._until_look = self._options["drift_file"], self._until_look - 1
        if file is None or self._until_look > 0:
            return
        found = _drift(self._place, self._options)
        file.write_text("".join(f"{line}\n" for line in found))
        for line in found if found != self._told else ():
            self._log.warning("the registered webhooks differ from the policy's", difference=line)
        self._told, self._until_look = found, ROUNDS_PER_LOOK


def _keeper(place: Place, options: Mapping[str, Any]) -> Keeper:
    from tls.files import PairFiles  # noqa: PLC0415
    from tls.rotation import Lives  # noqa: PLC0415
    from webhook.cluster.keeper import Keeper  # noqa: PLC0415

    hosts = options["hosts"] or service_hosts(options["service"], place.secret.namespace)
    days, seconds = dt.timedelta(days=1), dt.timedelta(seconds=1)
    lives = Lives(options["authority_days"] * days, options["leaf_days"] * days, options["settle"] * seconds)
    return Keeper(place.secret, place.configurations, hosts, PairFiles(options["directory"]), lives)


def _drift(place: Place, options: Mapping[str, Any]) -> tuple[str, ...]:
    from webhook.cluster.drift import drift  # noqa: PLC0415
    from webhook.config.catalogue import load_catalogue  # noqa: PLC0415
    from webhook.config.load import load_policy  # noqa: PLC0415
    from webhook.core.webhookconfig import Endpoint, configurations  # noqa: PLC0415

    policy, errors = load_policy(options["policy_file"])
    if errors:
        return tuple(f"the policy cannot be compared: {error}" for error in errors)
    expected = configurations(policy, load_catalogue(policy), Endpoint(place.secret.namespace, options["service"]))
    return drift(expected, place.configurations.registered())
