"""The options that every command takes, and what they load."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from webhook.config.load import LoadedClasses
    from webhook.core.policy import Policy
    from webhook.core.snapshot import Snapshot

Command = TypeVar("Command", bound=Callable[..., Any])


class Exit(IntEnum):
    """Exit codes."""

    FITS = 0
    REFUSED = 1
    BAD_INPUT = 2


def config_options(command: Command) -> Command:
    """Add `--policy` and `--classes`."""
    policy = click.option(
        "--policy",
        "policy_file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Policy file; default: the built-in policy.",
    )
    classes = click.option(
        "--classes",
        "class_paths",
        metavar="PATH",
        multiple=True,
        type=click.Path(path_type=Path),
        help="File or directory with node classes; may be given more than once. Default: all built-in classes.",
    )
    return policy(classes(command))


def output_option(*, default: str = "table") -> Callable[[Command], Command]:
    """Add `-o`."""
    return click.option(
        "-o", "--output", "fmt", type=click.Choice(["table", "json", "yaml"]), default=default, show_default=True, help="Format."
    )


def fail(problems: Iterable[object]) -> NoReturn:
    """Print what is wrong with the input, each on a line of stderr, and exit with 2."""
    for problem in problems:
        click.echo(str(problem), err=True)
    raise SystemExit(Exit.BAD_INPUT)


def load_policy(policy_file: Path | None) -> Policy:
    """Load the policy, or exit with every error in it."""
    from webhook.config import load  # noqa: PLC0415  marshmallow, only for those who load

    policy, errors = load.load_policy(policy_file)
    if errors:
        fail(errors)
    return policy


def read_classes(class_paths: tuple[Path, ...], policy: Policy) -> LoadedClasses:
    """Read the classes named on the command line with the built-in ones of the policy; without paths all built-in ones."""
    from webhook.config import load  # noqa: PLC0415

    if class_paths:
        return load.load_classes(class_paths, policy.builtin_classes)
    return load.load_builtin_classes()


def load_snapshot(policy_file: Path | None, class_paths: tuple[Path, ...]) -> Snapshot:
    """Load policy and classes, or exit with every error in them; warnings go to stderr."""
    from webhook.config.catalogue import load_catalogue  # noqa: PLC0415
    from webhook.core.snapshot import Snapshot  # noqa: PLC0415

    policy = load_policy(policy_file)
    loaded = read_classes(class_paths, policy)
    if loaded.errors:
        fail(loaded.errors)
    for warning in loaded.warnings if class_paths else ():
        click.echo(f"warning: {warning}", err=True)
    return Snapshot(policy=policy, catalogue=load_catalogue(policy), classes=loaded.classes, inventory=loaded.inventory)
