"""What `numalign serve` is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve; the defaults are those of a pod in a cluster.

    Attributes:
        policy: the policy file; None: the shipped policy.
        classes: files or directories with node classes, besides the built-in ones that the policy names.
        host: address to listen on; empty: all, IPv4 and IPv6.
        port: of the webhook (TLS); 0: any free one, see the log.
        metrics_port: of the plain port with /healthz, /readyz and /metrics; 0: any free one.
        cert: PEM file of the serving certificate, re-read when it changes, as is `key`; None in a demo, which makes its own.
        ca: PEM file of the authority that signed it; a demo verifies with it.
        client_ca: PEM file of the authorities whose clients are answered on the TLS port; None: anybody is.
        threads: requests handled at once.
        drain_file: exists: the pod is on its way out (see `health.Drain`).
        drift_file: what `numalign certs keep` writes about the registered webhook configurations.
        lookup_claims: the socket at which `numalign certs keep` reads the claims and templates that pods refer to.
        limits_file: what it writes about the cluster's LimitRanges.
        log_level: debug, info, warning or error.
        reload_seconds: between looks at the policy and class files.
        demo: make a certificate, put all built-in classes in force if no others are named, post a few reviews, print the answers.
        echo: also serve /echo, to measure against.
    """

    policy: Path | None = None
    classes: tuple[Path, ...] = ()
    host: str = ""
    port: int = 8443
    metrics_port: int = 8080
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    client_ca: Path | None = None
    threads: int = 16
    drain_file: Path | None = None
    drift_file: Path | None = None
    lookup_claims: Path | None = None
    limits_file: Path | None = None
    log_level: str = "info"
    reload_seconds: float = 10.0
    demo: bool = False
    echo: bool = False


class ServeError(Exception):
    """Why we cannot serve, and what to do; for people, before anything is served."""
