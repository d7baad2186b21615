"""Would the kubelet start with its managers' policies and options?

Sources: `policy_options.go` of `pkg/kubelet/cm/topologymanager` and of `cpumanager`, `topology_manager.go`, `cpu_manager.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.core.kubelet import config, reservation
from webhook.core.kubelet.excerpt import Case, StartError

_DEFAULT_MAX_NUMA_NODES = 8
_EXCLUSIVE_CPU_OPTIONS = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
_GA = 0
_CPU_OPTION_STAGES: Mapping[str, tuple[str, int]] = {
    "full-pcpus-only": ("", _GA),
    "strict-cpu-reservation": ("Beta", 35),
    "prefer-align-cpus-by-uncorecache": ("Beta", 36),
    "distribute-cpus-across-numa": ("Beta", 99),
    "align-by-socket": ("Alpha", 99),
    "distribute-cpus-across-cores": ("Alpha", 99),
}
"""Option -> (stage, the minor from which on it is GA and needs no gate)."""


def topology_options(case: Case) -> Iterator[StartError]:
    """Yield what is wrong with the Topology Manager's options; under policy none nobody looks at them."""
    options, path = case.excerpt.get("topologyManagerPolicyOptions"), "topologyManagerPolicyOptions"
    if options is not None and "TopologyManagerPolicyOptions" not in case.gates:
        yield StartError(path, "topology manager policy options require feature gates TopologyManagerPolicyOptions enabled")
        return
    if config.text_field(case.excerpt, "topologyManagerPolicy", "none") == "none":
        return
    for name, text in (options or {}).items():
        message = _topology_option_error(name, text, case)
        if message:
            yield StartError(f"{path}[{name}]", message)


def _topology_option_error(name: str, text: str, case: Case) -> str:
    if name == "prefer-closest-numa-nodes":
        return "" if config.parse_bool(text) is not None else _bad_bool(name, text)
    if name != "max-allowable-numa-nodes":
        return f'unknown Topology Manager Policy option: "{name}"'
    if case.minor < 35 and "TopologyManagerPolicyBetaOptions" not in case.gates:
        return f'topology manager policy beta-level options not enabled, but option "{name}" provided'
    if not config.is_go_int(text):
        return f'unable to convert policy option to integer "{name}": strconv.Atoi: parsing "{text}": invalid syntax'
    least = _DEFAULT_MAX_NUMA_NODES
    return f'the minimum value of "{name}" should not be less than {least}' if int(text) < least else ""


def numa_node_count(case: Case) -> Iterator[StartError]:
    """Yield whether the machine has more NUMA nodes than the Topology Manager takes, memory-only ones included."""
    if config.text_field(case.excerpt, "topologyManagerPolicy", "none") == "none":
        return
    options = case.excerpt.get("topologyManagerPolicyOptions") or {}
    allowed, found = int(options.get("max-allowable-numa-nodes", _DEFAULT_MAX_NUMA_NODES)), len(case.machine.cells)
    if found > allowed:
        yield StartError(
            "topologyManagerPolicy",
            f"unsupported on machines with more than {allowed} NUMA Nodes",
            f'topologyManagerPolicyOptions: {{max-allowable-numa-nodes: "{found}"}}',
        )


def cpu_policy(case: Case) -> Iterator[StartError]:
    """Yield what is wrong with the CPU Manager's policy and options."""
    policy = config.text_field(case.excerpt, "cpuManagerPolicy", "none")
    options = case.excerpt.get("cpuManagerPolicyOptions") or {}
    if policy == "none" and options:
        shown = " ".join(f"{name}:{text}" for name, text in sorted(options.items()))
        yield StartError(
            "cpuManagerPolicyOptions", f"new none policy error: None policy: received unsupported options=map[{shown}]"
        )
    elif policy not in ("none", "static"):
        yield StartError("cpuManagerPolicy", f'unknown policy: "{policy}"', "cpuManagerPolicy: static")
    elif policy == "static":
        cpu_set = config.reserved_cpu_set(case.excerpt)
        if not reservation.reserved(case.excerpt, "cpu", case.minor, cpu_set):
            yield StartError(
                "systemReserved[cpu]",
                "[cpumanager] unable to determine reserved CPU resources for static policy",
                "reserve CPUs: systemReserved, kubeReserved or reservedSystemCPUs",
            )
        yield from _cpu_options(case, options)


def _cpu_options(case: Case, options: Mapping[str, str]) -> Iterator[StartError]:
    path, failed = "cpuManagerPolicyOptions", "new static policy error: "
    single = [(name, _cpu_option_error(name, text, case)) for name, text in options.items()]
    for name, message in single:
        if message:
            yield StartError(f"{path}[{name}]", failed + message)
    on = {name for name, text in options.items() if config.parse_bool(text)}
    for one, other in _EXCLUSIVE_CPU_OPTIONS:
        if {one, other} <= on:
            yield StartError(path, f"{failed}static policy options {one} and {other} can not be used at the same time")
    if "align-by-socket" in on:
        yield from _align_by_socket(case, f"{path}[align-by-socket]", failed)


def _cpu_option_error(name: str, text: str, case: Case) -> str:
    if name not in _CPU_OPTION_STAGES:
        return f'unknown CPU Manager Policy option: "{name}"'
    stage, stable_since = _CPU_OPTION_STAGES[name]
    if case.minor < stable_since and f"CPUManagerPolicy{stage}Options" not in case.gates:
        return f'CPU Manager Policy {stage}-level Options not enabled, but option "{name}" provided'
    return "" if config.parse_bool(text) is not None else _bad_bool(name, text)


def _align_by_socket(case: Case, path: str, failed: str) -> Iterator[StartError]:
    if case.excerpt.get("topologyManagerPolicy") == "single-numa-node":
        message = "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        yield StartError(path, failed + message)
    topology = case.machine.cpu_topology
    if topology.socket_count > len(topology.numa):
        message = "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
        yield StartError(path, failed + message)


def _bad_bool(name: str, text: str) -> str:
    return f'bad value for option "{name}": strconv.ParseBool: parsing "{text}": invalid syntax'
