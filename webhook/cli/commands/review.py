"""`numalign review`: the server's very answers, without a server."""

from __future__ import annotations

import json
from contextlib import nullcontext
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from webhook.cli.inputs import Exit, config_options, fail, load_snapshot
from webhook.cli.output import progress

if TYPE_CHECKING:
    from webhook.core.snapshot import Snapshot


@click.command("review")
@config_options
@click.option(
    "--path",
    default="/mutate/pods/default",
    show_default=True,
    help="Path of the webhook that answers; the one that refuses is /validate/pods/strict.",
)
@click.option("--jsonl", is_flag=True, help="One AdmissionReview a line, any number of them; one answer a line.")
@click.argument("file", default="-", type=click.File("rb"))
def command(policy_file: Path | None, class_paths: tuple[Path, ...], path: str, jsonl: bool, file: BinaryIO) -> None:
    """Answer AdmissionReviews from FILE or stdin as the server would.

    What the server would answer with an HTTP error becomes a line of JSON with its status, and exit code 2.
    """
    from webhook.server.review import ROUTES  # noqa: PLC0415

    if path.partition("?")[0] not in ROUTES:
        fail([f"--path {path}: no such path; there are {', '.join(ROUTES)}"])
    snapshot = load_snapshot(policy_file, class_paths)
    if not jsonl:
        raise SystemExit(_answer(path, file.read(), snapshot))
    with progress(file.readlines(), "reviews") if file.seekable() else nullcontext(file) as bodies:
        raise SystemExit(max((_answer(path, body, snapshot) for body in bodies if body.strip()), default=Exit.FITS))


def _answer(path: str, body: bytes, snapshot: Snapshot) -> Exit:
    from webhook.server import review  # noqa: PLC0415

    answer = review.answer(path, body, snapshot)
    if answer.status is not HTTPStatus.OK:
        click.echo(json.dumps({"httpStatus": int(answer.status), "error": answer.body.decode().strip()}))
        return Exit.BAD_INPUT
    click.echo(answer.body)
    return Exit.FITS if answer.decision is None or answer.decision.allowed else Exit.REFUSED
