"""The set in force: policy, catalogue and node classes, replaced as a whole when their files change.

A file that is bad never takes effect: the last good set stays, and the status says what is wrong. A ConfigMap's volume is a
directory of links into another one that is swapped; that is why files are followed to what they point to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from webhook.config.catalogue import load_catalogue
from webhook.config.documents import ConfigError, ConfigWarning
from webhook.config.limits import load_limits
from webhook.config.load import builtin_names, load_classes, load_policy
from webhook.core.dra.references import Lookup
from webhook.core.snapshot import Snapshot

DEFAULT_SECONDS: Final = 10.0
LIMITS_SECONDS: Final = 1.0
"""Between looks at the LimitRanges: someone made one, and creates a pod next."""

Stamp = tuple[tuple[str, int, int, int], ...]
"""Path, modification time, size and inode of everything that was read; changes when any of it does."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the last look at the files went.

    Attributes:
        generation: of the set in force; 0: none was ever good.
        errors: why the files as they are now are not in force; empty: they are.
        warnings: about the files as they are now.
    """

    generation: int = 0
    errors: tuple[ConfigError, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether the files as they are now are in force (the metric `config_reload_success`)."""
        return not self.errors

    @property
    def last_error(self) -> str:
        """Return the errors as a text, one a line; empty: none."""
        return "\n".join(map(str, self.errors))


Listener = Callable[[Status], None]


class Live:
    """Holds the set in force. Reading it takes no lock; one thread at a time loads anew."""

    def __init__(
        self,
        policy: Path | None = None,
        classes: Sequence[Path] = (),
        *,
        all_builtin: bool = False,
        every: float = DEFAULT_SECONDS,
        lookup: Lookup | None = None,
        limits: Path | None = None,
    ) -> None:
        """Load the files once; what is wrong with them is in `status`.

        Args:
            policy: the policy's file, by default the shipped one.
            classes: files and directories of node classes.
            all_builtin: every built-in class counts, whatever the policy names.
            every: seconds between two looks at the files, once `start` was called.
            lookup: reads the claims that pods refer to.
            limits: the file of the cluster's LimitRanges, which may come later, change often, and be bad without harm.
        """
        self._policy_file, self._class_paths = policy, tuple(classes)
        self._all_builtin, self._every, self._lookup, self._limits_file = all_builtin, every, lookup, limits
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: list[Listener] = []
        self._snapshot = Snapshot(catalogue=load_catalogue(), generation=0)
        self._stamp: Stamp | None = None
        self._limits_stamp: Stamp = ()
        self.status = Status()
        self.check_now()
        self.check_limits()

    def current(self) -> Snapshot:
        """Return the set in force; with generation 0 an empty one, for nothing good was loaded yet."""
        return self._snapshot

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with the status now, and after each time the files were loaded anew."""
        self._listeners.append(listener)
        listener(self.status)

    def check_now(self) -> bool:
        """Load the files anew if they changed; return whether they did."""
        with self._lock:
            stamp = _stamp(self._paths())
            if stamp == self._stamp:
                return False
            # Taken before reading: what changes meanwhile shows at the next look.
            self._stamp = stamp
            self._load()
        for listener in self._listeners:
            listener(self.status)
        return True

    def check_limits(self) -> bool:
        """Read the LimitRanges anew if their file changed; return whether it did. The rest of the set stays as it is."""
        with self._lock:
            stamp = _stamp((self._limits_file,) if self._limits_file else ())
            if stamp == self._limits_stamp:
                return False
            assert self._limits_file is not None  # noqa: S101  without a file there is nothing that could change
            self._limits_stamp = stamp
            limits, warnings = load_limits(self._limits_file)
            if limits is not None:
                self._snapshot = self._snapshot.knowing(limits)
            status = replace(self.status, warnings=warnings)
        for listener in self._listeners if warnings else ():
            listener(status)
        return True

    def start(self) -> None:
        """Look at the files every few seconds, in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="config-reload", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End that thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _watch(self) -> None:
        """Look at the LimitRanges more often than at the rest, which takes longer to load and changes seldom."""
        pause = min(self._every, LIMITS_SECONDS)
        since = 0.0
        while not self._stopped.wait(pause):
            self.check_limits()
            since += pause
            if since >= self._every:
                since = 0.0
                self.check_now()

    def _paths(self) -> tuple[Path, ...]:
        return (*([self._policy_file] if self._policy_file else ()), *self._class_paths)

    def _load(self) -> None:
        try:
            self._replace()
        except Exception as error:  # noqa: BLE001 - whatever it is, the set in force must stay and someone must hear of it
            broken = ConfigError(", ".join(map(str, self._paths())), 0, "", f"cannot be loaded: {error!r}")
            self.status = Status(self._snapshot.generation, (broken,))

    def _replace(self) -> None:
        policy, errors = load_policy(self._policy_file)
        builtin = builtin_names() if self._all_builtin else policy.builtin_classes
        # To begin without node classes is a way to install; to lose all of them is an accident.
        loaded = load_classes(self._class_paths, builtin, may_be_none=not self._snapshot.classes)
        errors += loaded.errors
        if errors:
            self.status = Status(self._snapshot.generation, errors, loaded.warnings)
            return
        generation = self._snapshot.generation + 1
        catalogue, limits = load_catalogue(policy), self._snapshot.limits
        self._snapshot = Snapshot(policy, catalogue, loaded.classes, generation, loaded.inventory, self._lookup, limits)
        self.status = Status(generation, (), loaded.warnings)


def _stamp(paths: Sequence[Path]) -> Stamp:
    return tuple(entry for path in paths for entry in _entries(path))


def _entries(path: Path) -> Iterator[tuple[str, int, int, int]]:
    yield _entry(path)
    try:
        names = sorted(os.listdir(path)) if path.is_dir() else []  # noqa: PTH208 - names, not paths
    except OSError:
        names = []
    for name in names:
        if name[0] != ".":
            yield _entry(path / name)


def _entry(path: Path) -> tuple[str, int, int, int]:
    """Return what a path leads to, links followed; a swapped link shows as another inode."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, -1, 0
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino
