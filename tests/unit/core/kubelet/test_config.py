"""Would the kubelet start, and with which configuration?"""

import re
from typing import Any

import pytest

from tests.unit.core.kubelet.classes import cpus, node_class, static, topology
from webhook.core.kubelet.config import CpuOptions, parse_bool, parse_cpu_list
from webhook.core.kubelet.excerpt import StartError
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.model import Topology
from webhook.core.quantities import GI, MI, NANO

EIGHT = topology(*[8] * 8)
NINE = topology(*[8] * 9)
SMALL = topology(4, 4, threads=1, memory=GI)
PAGES = topology(4, threads=1, sockets=1, memory=4 * GI)
MEMORY_STATIC = {"memoryManagerPolicy": "Static"}


def kubelet(excerpt: dict[str, Any], machine: Topology | None = None, minor: int = 37) -> NodeKubelet:
    return compile_class(node_class(excerpt, machine, minor=minor))


def reserved_memory(*amounts: object, resource: str = "memory") -> dict[str, Any]:
    """A Memory Manager with so much reserved on each node."""
    entries = [{"numaNode": node, "limits": {resource: amount}} for node, amount in enumerate(amounts)]
    return {**MEMORY_STATIC, "reservedMemory": entries}


STARTS: list[tuple[dict[str, Any], Topology | None, int]] = [
    ({}, None, 37),
    ({"cpuManagerPolicy": "", "topologyManagerScope": ""}, None, 37),
    (static(), None, 37),
    (static("1n", featureGates={}), None, 36),
    (static(options=["full-pcpus-only", "distribute-cpus-across-numa"]), None, 37),
    (static(options=["strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"]), None, 34),
    (static(options=["align-by-socket"], topologyManagerPolicy="restricted"), None, 37),
    ({"cpuManagerPolicyOptions": {}}, None, 37),
    ({"systemReserved": {"cpu": "0", "memory": "0"}}, None, 37),
    ({"reservedSystemCPUs": "0-3,8", "cpuManagerPolicy": "static"}, None, 37),
    ({"reservedSystemCPUs": "0", "systemReserved": {"cpu": "nonsense"}}, None, 37),
    ({"topologyManagerPolicy": "none", "topologyManagerPolicyOptions": {"bogus": "1"}}, NINE, 37),
    ({"topologyManagerPolicy": "restricted"}, EIGHT, 37),
    ({"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"}}, NINE, 37),
    (reserved_memory("50Mi", "50Mi"), None, 37),
    (reserved_memory("100Mi"), None, 37),
    ({**reserved_memory("1Gi"), "evictionHard": {}, "systemReserved": {"memory": "1Gi"}}, None, 37),
    ({**reserved_memory("1Gi"), "evictionHard": {"memory.available": "0%"}, "kubeReserved": {"memory": "1Gi"}}, None, 37),
    ({**reserved_memory("1Gi"), "evictionHard": {"memory.available": "100%"}, "kubeReserved": {"memory": "1Gi"}}, None, 37),
    ({**reserved_memory("100Mi"), "evictionHard": {"pid.available": "5%"}, "mergeDefaultEvictionSettings": True}, None, 37),
    ({**reserved_memory("100Mi"), "evictionHard": None}, None, 37),
    ({**reserved_memory("27487791104"), "evictionHard": {"memory.available": "5%"}}, None, 37),
    ({"evictionHard": {"memory.available": "1_0.5e0%"}}, None, 37),
    ({"enforceNodeAllocatable": []}, None, 37),
    ({"enforceNodeAllocatable": ["none"], "cgroupsPerQOS": False}, None, 37),
    ({"evictionSoft": {"memory.available": "1Gi"}, "evictionSoftGracePeriod": {"memory.available": "1m"}}, None, 37),
    ({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "unheardOf": 1}, None, 37),
    ({"maxPods": 0, "podsPerCore": 4, "registryPullQPS": None}, None, 37),
]


@pytest.mark.parametrize(("excerpt", "machine", "minor"), STARTS)
def test_starts(excerpt: dict[str, Any], machine: Topology | None, minor: int):
    found = kubelet(excerpt, machine, minor)

    assert (found.start, found.errors) == (None, ())


REFUSES: list[tuple[dict[str, Any], Topology | None, int, str, str]] = [
    ({"kind": "Kubelet"}, None, 37, "kind", "failed to decode"),
    ({"systemReserved": {"cpu": 4}}, None, 37, "systemReserved[cpu]", "cannot unmarshal number .* of type string"),
    (
        {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
        None,
        37,
        "cpuManagerPolicyOptions[full-pcpus-only]",
        "unmarshal bool",
    ),
    ({"apiVersion": "kubelet.config.k8s.io/v1"}, None, 37, "apiVersion", 'registered for version "kubelet.config.k8s.io/v1"'),
    ({"apiVersion": "kubelet.config.k8s.io/v2"}, None, 37, "apiVersion", 'no kind "KubeletConfiguration" is registered'),
    ({"kind": "KubeProxyConfiguration"}, None, 37, "kind", 'no kind "KubeProxyConfiguration" is registered'),
    ({"evictionHard": ["memory.available"]}, None, 37, "evictionHard", "cannot unmarshal array .* of type map"),
    ({"featureGates": {"AllBeta": "true"}}, None, 37, "featureGates[AllBeta]", "cannot unmarshal string .* of type bool"),
    ({"mergeDefaultEvictionSettings": "yes"}, None, 37, "mergeDefaultEvictionSettings", "of type bool"),
    ({"enforceNodeAllocatable": "pods"}, None, 37, "enforceNodeAllocatable", "of type slice"),
    ({"reservedMemory": {"numaNode": 0}}, None, 37, "reservedMemory", "of type slice"),
    ({"reservedMemory": ["0"]}, None, 37, "reservedMemory[0]", "of type map"),
    (
        {"reservedMemory": [{"numaNode": "0"}]},
        None,
        37,
        "reservedMemory[0].numaNode",
        r"MemoryReservation\.reservedMemory\.numaNode of type int32",
    ),
    ({"reservedMemory": [{"limits": ["1Gi"]}]}, None, 37, "reservedMemory[0].limits", "of type map"),
    ({"reservedMemory": [{"limits": {"memory": "much"}}]}, None, 37, "reservedMemory[0].limits[memory]", "quantity"),
    ({"maxPods": "110"}, None, 37, "maxPods", "cannot unmarshal string .* KubeletConfiguration.maxPods of type int32"),
    ({"maxPods": True}, None, 37, "maxPods", "cannot unmarshal bool"),
    ({"maxPods": -1}, None, 37, "maxPods", r"maxPods \(--max-pods\) -1 must not be a negative number"),
    ({"maxPods": -1}, None, 34, "maxPods", r"maxPods \(--max-pods\) -1 must not be a negative number"),
    ({"eventRecordQPS": -5}, None, 37, "eventRecordQPS", r"eventRecordQPS \(--event-qps\) -5 must not be"),
    ({"featureGates": {"Bogus": True}}, None, 37, "featureGates[Bogus]", "unrecognized feature gate: Bogus"),
    ({"topologyManagerPolicy": "strict"}, None, 37, "topologyManagerPolicy", 'topologyManagerPolicy .* "strict" must be one of'),
    ({"topologyManagerScope": "Pod"}, None, 37, "topologyManagerScope", '"Pod" must be one of'),
    ({"enforceNodeAllocatable": ["all"]}, None, 37, "enforceNodeAllocatable", 'option "all" specified'),
    ({"enforceNodeAllocatable": ["pods", "pods"]}, None, 37, "enforceNodeAllocatable", "duplicated enforcements"),
    ({"enforceNodeAllocatable": ["none", "pods"]}, None, 37, "enforceNodeAllocatable", "additional enforcements"),
    ({"enforceNodeAllocatable": ["kube-reserved"]}, None, 37, "kubeReservedCgroup", "must be specified"),
    (
        {"enforceNodeAllocatable": ["kube-reserved", "kube-reserved-compressible"], "kubeReservedCgroup": "/k"},
        None,
        37,
        "enforceNodeAllocatable",
        "cannot be specified together",
    ),
    ({"cgroupsPerQOS": False}, None, 37, "cgroupsPerQOS", "must be set to true"),
    ({"reservedSystemCPUs": "0", "systemReservedCgroup": "/s"}, None, 37, "reservedSystemCPUs", "can't use reservedSystemCPUs"),
    ({"reservedSystemCPUs": "0-"}, None, 37, "reservedSystemCPUs", "unable to parse"),
    ({"reservedSystemCPUs": "200"}, None, 37, "reservedSystemCPUs", "200 is not a subset of online-cpus: 0-111"),
    ({"reservedMemory": [{"limits": {"cpu": "1"}}]}, None, 37, "reservedMemory[0].limits[cpu]", "is not supported"),
    ({"reservedMemory": [{"limits": {"memory": 0}}]}, None, 37, "reservedMemory[0].limits[memory]", "may not be zero"),
    ({"reservedMemory": [{"limits": {"memory": 1}}] * 2}, None, 37, "reservedMemory[1].limits[memory]", "duplicate value"),
    (
        {"kubeReserved": {"hugepages-1Gi": "1Gi"}},
        None,
        37,
        "kubeReserved[hugepages-1Gi]",
        'cannot reserve "hugepages-1Gi" resource',
    ),
    ({"systemReserved": {"memory": "-1Gi"}}, None, 37, "systemReserved[memory]", "cannot be negative"),
    ({"evictionHard": {"memory.available": "1e99%"}}, None, 37, "evictionHard[memory.available]", "<= 100%"),
    ({"evictionHard": {"memory.available": "-1e99%"}}, None, 37, "evictionHard[memory.available]", ">= 0%"),
    ({"systemReserved": {"cpu": " 2"}}, None, 37, "systemReserved[cpu]", "spaces around it"),
    ({"systemReserved": {"cpu": "two"}}, None, 37, "systemReserved[cpu]", "failed to parse quantity"),
    ({"evictionHard": {"memory.free": "1Gi"}}, None, 37, "evictionHard[memory.free]", "unsupported eviction signal memory.free"),
    ({"evictionHard": {"memory.available": "0"}}, None, 37, "evictionHard[memory.available]", "must be positive"),
    ({"evictionHard": {"memory.available": "-1Mi"}}, None, 37, "evictionHard[memory.available]", "must be positive"),
    ({"evictionHard": {"memory.available": "x%"}}, None, 37, "evictionHard[memory.available]", "ParseFloat"),
    ({"evictionHard": {"memory.available": "101%"}}, None, 37, "evictionHard[memory.available]", "<= 100%"),
    ({"evictionHard": {"memory.available": "-5%"}}, None, 37, "evictionHard[memory.available]", ">= 0%"),
    ({"evictionHard": {"nodefs.available": "most"}}, None, 37, "evictionHard[nodefs.available]", "quantity"),
    ({"evictionSoft": {"memory.available": "1Gi"}}, None, 37, "evictionSoftGracePeriod", "grace period must be specified"),
    (
        {"featureGates": {"TopologyManagerPolicyOptions": False}, "topologyManagerPolicyOptions": {}},
        None,
        34,
        "topologyManagerPolicyOptions",
        "require feature gates TopologyManagerPolicyOptions enabled",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"bogus": "1"}},
        None,
        37,
        "topologyManagerPolicyOptions[bogus]",
        "unknown Topology Manager Policy option",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"zone": "true", "level": "8"}},
        None,
        37,
        "topologyManagerPolicyOptions[zone]",
        "unknown Topology Manager Policy option",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "yes"}},
        None,
        37,
        "topologyManagerPolicyOptions[prefer-closest-numa-nodes]",
        "bad value for option",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "7"}},
        None,
        37,
        "topologyManagerPolicyOptions[max-allowable-numa-nodes]",
        "should not be less than 8",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "many"}},
        None,
        37,
        "topologyManagerPolicyOptions[max-allowable-numa-nodes]",
        "unable to convert",
    ),
    (
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"},
            "featureGates": {"TopologyManagerPolicyBetaOptions": False},
        },
        None,
        34,
        "topologyManagerPolicyOptions[max-allowable-numa-nodes]",
        "beta-level options not enabled",
    ),
    ({"topologyManagerPolicy": "best-effort"}, NINE, 37, "topologyManagerPolicy", "more than 8 NUMA Nodes"),
    ({"cpuManagerPolicy": "Static"}, None, 37, "cpuManagerPolicy", 'unknown policy: "Static"'),
    (
        {"cpuManagerPolicyOptions": {"full-pcpus-only": "false"}},
        None,
        37,
        "cpuManagerPolicyOptions",
        "received unsupported options",
    ),
    ({"cpuManagerPolicy": "static"}, None, 37, "systemReserved[cpu]", "unable to determine reserved CPU resources"),
    (static("1n"), None, 37, "systemReserved[cpu]", "unable to determine reserved CPU resources"),
    (static(options=["bogus"]), None, 37, "cpuManagerPolicyOptions[bogus]", "unknown CPU Manager Policy option"),
    (
        static(cpuManagerPolicyOptions={"full-pcpus-only": "yes"}),
        None,
        37,
        "cpuManagerPolicyOptions[full-pcpus-only]",
        "bad value for option",
    ),
    (
        static(options=["align-by-socket"], featureGates={}),
        None,
        37,
        "cpuManagerPolicyOptions[align-by-socket]",
        "Alpha-level Options not enabled",
    ),
    (
        static(options=["prefer-align-cpus-by-uncorecache"], featureGates={"CPUManagerPolicyBetaOptions": False}),
        None,
        35,
        "cpuManagerPolicyOptions[prefer-align-cpus-by-uncorecache]",
        "Beta-level Options not enabled",
    ),
    (
        static(options=["align-by-socket"], topologyManagerPolicy="single-numa-node"),
        None,
        37,
        "cpuManagerPolicyOptions[align-by-socket]",
        "incompatible",
    ),
    (static(options=["align-by-socket"]), topology(8), 37, "cpuManagerPolicyOptions[align-by-socket]", "sockets are more"),
    (static("9"), SMALL, 37, "systemReserved[cpu]", 'Resource "cpu" has a reservation of 9 but capacity of 8'),
    ({"systemReserved": {"memory": "3Gi"}}, SMALL, 37, "systemReserved[memory]", 'Resource "memory" has a reservation'),
    ({"memoryManagerPolicy": "static"}, None, 37, "memoryManagerPolicy", 'unknown policy: "static"'),
    ({"memoryManagerPolicy": "BestEffort"}, None, 37, "memoryManagerPolicy", "not available for platform"),
    (reserved_memory("50Mi", "25Mi", "25Mi"), None, 37, "reservedMemory", "references a NUMA node 2 that does not exist"),
    (MEMORY_STATIC, None, 37, "reservedMemory", 'the total amount "0" of type "memory" is not equal to the value "100Mi"'),
    ({**MEMORY_STATIC, "evictionHard": {}}, None, 37, "reservedMemory", "you should specify the system reserved memory"),
    (
        {**reserved_memory("1500Mi"), "systemReserved": {"memory": "1400Mi"}},
        SMALL,
        37,
        "reservedMemory",
        "1500Mi of memory are reserved on NUMA node 0, which has 1Gi",
    ),
]


@pytest.mark.parametrize(("excerpt", "machine", "minor", "path", "message"), REFUSES)
def test_refuses_to_start(excerpt: dict[str, Any], machine: Topology | None, minor: int, path: str, message: str):
    found = kubelet(excerpt, machine, minor)

    assert found.start == found.errors[0].message
    assert found.errors[0].path == path
    assert re.search(message, found.errors[0].message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("full-pcpus-only", "distribute-cpus-across-cores"),
        ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
        ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
        ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
    ],
)
def test_options_that_exclude_each_other(one: str, other: str):
    assert f"{one} and {other} can not be used at the same time" in (kubelet(static(options=[one, other])).start or "")


@pytest.mark.parametrize(
    ("options", "minor", "needs_gate"),
    [
        ("strict-cpu-reservation", 34, True),
        ("strict-cpu-reservation", 35, False),
        ("prefer-align-cpus-by-uncorecache", 35, True),
        ("prefer-align-cpus-by-uncorecache", 36, False),
        ("distribute-cpus-across-numa", 37, True),
        ("full-pcpus-only", 34, False),
    ],
)
def test_beta_options_by_minor(options: str, minor: int, needs_gate: bool):
    found = kubelet(static(options=[options], featureGates={"CPUManagerPolicyBetaOptions": False}), minor=minor)

    assert (found.start is not None) is needs_gate


def test_a_published_configuration_that_does_not_start():
    """A complete kubelet configuration for DGX nodes that is going round: hugepages cannot be reserved like this."""
    excerpt = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "systemReserved": {"cpu": "4", "memory": "8Gi"},
        "kubeReserved": {"cpu": "2", "memory": "4Gi"},
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
        **reserved_memory("8Gi", "8Gi", resource="hugepages-1Gi"),
    }

    found = kubelet(excerpt)

    fix = "reservedMemory: [{numaNode: 0, limits: {memory: 6194Mi}}, {numaNode: 1, limits: {memory: 6194Mi}}], and no hugepages"
    told = 'the total amount "{}" of type "{}" is not equal to the value "{}" determined by Node Allocatable feature'
    assert found.errors == (
        StartError("reservedMemory", told.format("0", "memory", "12388Mi"), fix),
        StartError("reservedMemory", told.format("16Gi", "hugepages-1Gi", "0"), fix),
    )
    assert kubelet({**excerpt, **reserved_memory("6194Mi", "6194Mi")}).start is None


@pytest.mark.parametrize(
    ("reserved", "paths"),
    [
        ({"cpu": "nonsense", "memory": "-1Gi"}, ["memory"]),
        ({"bogus": "1", "memory": "-1Gi"}, ["bogus", "memory"]),
        ({"memory": "much", "pid": "-1"}, ["memory", "pid"]),
    ],
)
def test_every_wrong_reservation_is_named_but_for_cpus_that_a_cpu_set_replaces(reserved: dict[str, str], paths: list[str]):
    found = kubelet({"reservedSystemCPUs": "0", "systemReserved": reserved}).errors

    assert [error.path for error in found] == [f"systemReserved[{resource}]" for resource in paths]


def test_the_fix_reserves_memory_beside_cpus():
    (found,) = kubelet(reserved_memory("1Gi"), topology(4, 0, 4, 4, threads=1, memory=GI)).errors

    amounts = [(0, "34Mi"), (2, "33Mi"), (3, "33Mi")]
    entries = ", ".join(f"{{numaNode: {node}, limits: {{memory: {amount}}}}}" for node, amount in amounts)
    assert found.fix == f"reservedMemory: [{entries}], and no hugepages"


def test_what_hugepages_take_cannot_be_reserved():
    machine = Topology(1, 1, tuple(node.__class__(0, node.cpus, node.memory, {GI: 3 * GI}) for node in PAGES.numa_nodes))
    excerpt = {**reserved_memory("2Gi"), "evictionHard": {"memory.available": "2Gi"}}

    assert "2Gi of memory are reserved on NUMA node 0, which has 1Gi besides hugepages" in (kubelet(excerpt, machine).start or "")


def test_an_uneven_split_still_adds_up():
    found = kubelet({**MEMORY_STATIC, "systemReserved": {"memory": "1001Mi"}}, topology(4, 4, 4, threads=1))

    assert "{memory: 367Mi}" in found.errors[0].fix
    assert "{numaNode: 2, limits: {memory: 367Mi}}" in found.errors[0].fix


def test_an_error_reads_with_its_fix():
    assert str(StartError("a", "wrong", "write b")) == "wrong (write b)"
    assert str(StartError("a", "wrong")) == "wrong"


def test_numbers_that_should_have_been_strings_are_shown_as_strings():
    assert kubelet({"systemReserved": {"cpu": 4}}).errors[0].fix == 'quote it: "4"'
    assert kubelet({"cpuManagerPolicyOptions": {"full-pcpus-only": True}}).errors[0].fix == 'quote it: "true"'


def test_defaults():
    config = kubelet({}).config

    assert (config.topology_policy, config.topology_scope, config.cpu_static, config.memory_static) == (
        "none",
        "container",
        False,
        False,
    )
    assert (config.reserved_cpu, config.reserved_memory) == (0, 100 * MI * NANO)


@pytest.mark.parametrize(
    ("policy", "option", "expected"),
    [("none", "true", False), ("restricted", "true", True), ("restricted", "false", False), ("best-effort", None, False)],
)
def test_closest_nodes(policy: str, option: str | None, expected: bool):
    options = {} if option is None else {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": option}}

    assert kubelet({"topologyManagerPolicy": policy, **options}).config.prefer_closest is expected


def test_everything_that_can_be_said():
    config = kubelet(
        {
            **static("1", ["full-pcpus-only"], kubeReserved={"cpu": "500m", "memory": "1Gi"}),
            **reserved_memory("1100Mi", "24Mi"),
            "topologyManagerPolicy": "restricted",
            "topologyManagerScope": "pod",
            "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "16"},
        }
    ).config

    assert config.topology_policy == "restricted"
    assert config.topology_scope == "pod"
    assert config.prefer_closest
    assert config.cpu_options == CpuOptions(full_pcpus_only=True)
    assert config.reserved_cpu == 3 * NANO // 2
    assert config.reserved_memory == 1124 * MI * NANO
    assert config.memory_manager_reserved == {0: {"memory": 1100 * MI}, 1: {"memory": 24 * MI}}


def test_a_cpu_set_replaces_numbers():
    config = kubelet({**static("40"), "reservedSystemCPUs": "0,56", "kubeReserved": {"cpu": "1"}}).config

    assert config.reserved_system_cpus == cpus("0,56")
    assert config.reserved_cpu == 2 * NANO


@pytest.mark.parametrize(
    ("amount", "minor", "expected"),
    [("0.0004", 37, 0), ("500u", 37, 10**6), ("499u", 37, 0), ("500u", 36, 5 * 10**5), ("1.2345", 37, 1_235 * 10**6)],
)
def test_cpu_finer_than_a_milli(amount: str, minor: int, expected: int):
    assert kubelet({"systemReserved": {"cpu": amount}}, minor=minor).config.reserved_cpu == expected


@pytest.mark.parametrize(("text", "expected"), [("0-2,5", 0b100111), ("+1", 0b10), ("3", 0b1000), ("1,1", 0b10)])
def test_cpu_lists(text: str, expected: int):
    assert parse_cpu_list(text) == expected


@pytest.mark.parametrize("text", ["", "1-0", "a", "1,", "-1", " 1", "1_0", "1-2-3", "٣"])
def test_no_cpu_lists(text: str):
    with pytest.raises(ValueError, match=r"strconv\.Atoi|invalid range"):
        parse_cpu_list(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("T", True), ("0", False), ("False", False), ("yes", None), ("", None)]
)
def test_booleans(text: str, expected: bool | None):
    assert parse_bool(text) is expected
