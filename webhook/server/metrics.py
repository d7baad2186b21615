"""The Prometheus metrics of one server process, in a registry of their own."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.core.decision import Decision

_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Seconds. A decision takes 0.1 ms to some ms; the API server stops waiting after 2 s."""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""What the API server takes for a namespace's name. Whoever reaches our port may send another; as a label, it would stay."""

_UNKNOWN = float("nan")
"""What a gauge shows before anything looked: a 0 would claim that all is well, or that all is lost."""


class Tally(Collector):
    """A counter of which a decision counts a dozen at once: one lock for all of them."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self._about = (name, text, labels)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, several: Iterable[tuple[str, ...]]) -> None:
        """Count each set of label values once."""
        with self._lock:
            for labels in several:
                self._counts[labels] = self._counts.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """Return what Prometheus asks for."""
        name, text, labels = self._about
        family = CounterMetricFamily(name, text, labels=labels)
        with self._lock:
            counts = dict(self._counts)
        for values, count in counts.items():
            family.add_metric(values, count)
        yield family


class Metrics:
    """The metrics, and what one decision adds to them. Thread-safe."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody reads
        self.registry = registry = CollectorRegistry()
        self._children: dict[tuple[Any, ...], Counter] = {}
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"numalign_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            made = Gauge(f"numalign_{name}", text, registry=registry)
            made.set(_UNKNOWN)
            return made

        self.decisions = counter(
            "decisions", "Decisions on admission requests.", "handler", "mode", "outcome", "reason", "dry_run"
        )
        self.would_refuse = counter(
            "would_refuse", "Pods, and claims written by hand, admitted that strict mode would have refused.", "namespace"
        )
        self.class_verdict = Tally("numalign_class_verdict", "Verdicts on pods per node class.", ("class", "verdict"))
        registry.register(self.class_verdict)
        self.injected_cpu = counter("injected_cpu_cores", "Cores added to the CPU requests of pods.")
        self.injected_memory = counter("injected_memory_bytes", "Bytes added to the memory requests of pods.")
        self.undescribed = counter("undescribed_pods", "Pods admitted as written, since no node class offers their accelerator.")
        self.seconds = Histogram(
            "numalign_decision_seconds",
            "Time from the bytes of a request to the bytes of its answer.",
            ("handler",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.config_reload_success = gauge(
            "config_reload_success", "1: the files on disk are in force; 0: they are bad, and an older set is in force."
        )
        self.webhook_drift = gauge("webhook_drift", "1: the cluster's webhook configurations differ from ours; NaN: not looked.")
        self.cert_expiry = gauge("cert_expiry_seconds", "Seconds until the serving certificate expires; NaN: it does not load.")

    def observe(self, handler: str, namespace: str, decision: Decision, *, dry_run: bool, seconds: float) -> None:
        """Count one decision. A dry run creates nothing, so it injects nothing and would refuse nothing."""
        self.seconds.labels(handler).observe(seconds)
        self._count(self.decisions, handler, decision.mode, decision.outcome, decision.reason, str(dry_run).lower())
        if dry_run:
            return
        self.class_verdict.add((name, verdict.outcome) for name, verdict in decision.verdicts.items())
        self._count_outcome(handler, namespace, decision)

    def _count(self, counter: Counter, *labels: str) -> None:
        # `labels` takes a lock and makes texts of its arguments; a decision counts a dozen of these
        child = self._children.get((counter, *labels))
        if child is None:
            child = self._children[counter, *labels] = counter.labels(*labels)
        child.inc()

    def _count_outcome(self, handler: str, namespace: str, decision: Decision) -> None:
        # an object passes both webhooks: what is injected counts where it happens, the rest where the final one is judged
        if handler == "mutate":
            self.injected_cpu.inc(max(0.0, decision.injected_cpu))
            self.injected_memory.inc(max(0, decision.injected_memory))
        elif handler in {"validate", "validate-claim"} and decision.outcome == "would-refuse":
            self._count(self.would_refuse, namespace if _NAMESPACE.fullmatch(namespace) else "")
        elif handler == "validate" and decision.outcome == "undescribed":
            self.undescribed.inc()


def follow(gauge: Gauge, value: Callable[[], float]) -> None:
    """Let a gauge ask `value` at each scrape."""
    gauge.set_function(value)
