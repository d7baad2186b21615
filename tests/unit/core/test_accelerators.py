import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.accelerators import Catalogue, Entry, Kind, NumaHint, asks

GPU = Entry(Kind.DEVICE, "NVIDIA", name="nvidia.com/gpu", hint=NumaHint.YES, hami=True)
CATALOGUE = Catalogue(
    [
        GPU,
        Entry(Kind.MEMORY, "NVIDIA", name="nvidia.com/gpumem", hami=True, implies="nvidia.com/gpu", units_per_device=0),
        Entry(Kind.CORES, "NVIDIA", name="nvidia.com/gpucores", hami=True, implies="nvidia.com/gpu", units_per_device=0),
        Entry(Kind.PSEUDO, "NVIDIA", name="nvidia.com/priority", units_per_device=None),
        Entry(Kind.PARTITION, "NVIDIA", pattern=r"nvidia\.com/mig-\d+g\.\d+gb"),
        Entry(Kind.SHARED, "Enflame", name="enflame.com/drs-gcu", units_per_device=0),
        Entry(Kind.CORES, "AWS", name="aws.amazon.com/neuroncore", units_per_device=2),
        Entry(Kind.NIC, "any", pattern=r"openshift\.io/[a-z0-9]+"),
        Entry(Kind.NIC, "NVIDIA", name="nvidia.com/hostdev"),
        Entry(Kind.NIC, "any", pattern=r"rdma/[a-z]+", units_per_device=0),
    ]
)


def pod(*containers, init=()):
    def one(index, limits):
        return {"name": f"c{index}", "resources": {"limits": limits}}

    return {
        "spec": {
            "initContainers": [{**one(i, limits), "name": f"i{i}"} for i, limits in enumerate(init)],
            "containers": [one(i, limits) for i, limits in enumerate(containers)],
        }
    }


def counted(found):
    return [(ask.container.name, ask.resource, ask.units, ask.devices) for ask in found]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"nvidia.com/gpu": 2}, [("c0", "nvidia.com/gpu", 2, 2)]),
        ({"nvidia.com/gpu": "2"}, [("c0", "nvidia.com/gpu", 2, 2)]),
        ({"nvidia.com/gpu": 0}, []),
        ({"nvidia.com/gpu": "0"}, []),
        ({"nvidia.com/gpu": "-1"}, []),
        ({"nvidia.com/gpu": None}, []),
        ({"nvidia.com/gpu": "0.5.1"}, []),
        ({"nvidia.com/gpu": "1500m"}, [("c0", "nvidia.com/gpu", 2, 2)]),
        ({"nvidia.com/mig-1g.10gb": 3}, [("c0", "nvidia.com/mig-1g.10gb", 3, 3)]),
        ({"enflame.com/drs-gcu": 6}, [("c0", "enflame.com/drs-gcu", 6, 1)]),
        ({"aws.amazon.com/neuroncore": 1}, [("c0", "aws.amazon.com/neuroncore", 1, 1)]),
        ({"aws.amazon.com/neuroncore": 4}, [("c0", "aws.amazon.com/neuroncore", 4, 2)]),
        ({"nvidia.com/priority": 1}, []),
        ({"cpu": 4, "memory": "8Gi", "hugepages-1Gi": "2Gi"}, []),
        # HAMi adds one GPU where only memory or cores are named
        ({"nvidia.com/gpumem": 3000}, [("c0", "nvidia.com/gpu", 1, 1)]),
        ({"nvidia.com/gpucores": 30}, [("c0", "nvidia.com/gpu", 1, 1)]),
        ({"nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}, [("c0", "nvidia.com/gpu", 1, 1)]),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}, [("c0", "nvidia.com/gpu", 2, 2)]),
        ({"nvidia.com/gpu": 0, "nvidia.com/gpumem": 3000}, []),
        ({"nvidia.com/gpumem": 0}, []),
    ],
)
def test_counts_devices(limits, expected):
    assert counted(asks(pod(limits), CATALOGUE).accelerators) == expected


def test_an_implied_ask_says_what_was_named():
    (ask,) = asks(pod({"nvidia.com/gpumem": 3000}), CATALOGUE).accelerators
    assert (ask.implied, ask.named, ask.entry) == (True, "nvidia.com/gpumem", GPU)
    (ask,) = asks(pod({"nvidia.com/gpu": 1}), CATALOGUE).accelerators
    assert (ask.implied, ask.named) == (False, "nvidia.com/gpu")


def test_every_kind_of_container_counts_by_itself():
    found = asks(pod({"nvidia.com/gpu": 1}, {"nvidia.com/gpumem": 1}, {}, init=[{"nvidia.com/gpu": 4}]), CATALOGUE)
    assert counted(found.accelerators) == [
        ("i0", "nvidia.com/gpu", 4, 4),
        ("c0", "nvidia.com/gpu", 1, 1),
        ("c1", "nvidia.com/gpu", 1, 1),
    ]


def test_nics_are_told_from_accelerators():
    found = asks(pod({"nvidia.com/hostdev": 2, "openshift.io/vf": 1, "rdma/hca": 1000}), CATALOGUE)
    assert found.accelerators == ()
    assert counted(found.nics) == [
        ("c0", "nvidia.com/hostdev", 2, 2),
        ("c0", "openshift.io/vf", 1, 1),
        ("c0", "rdma/hca", 1000, 1),
    ]


def test_limits_come_before_requests():
    container = {
        "name": "c0",
        "resources": {"requests": {"nvidia.com/gpu": 8, "nvidia.com/hostdev": 1}, "limits": {"nvidia.com/gpu": 2}},
    }
    found = asks({"spec": {"containers": [container]}}, CATALOGUE)
    assert counted(found.accelerators) == [("c0", "nvidia.com/gpu", 2, 2)]
    assert counted(found.nics) == [("c0", "nvidia.com/hostdev", 1, 1)]


@pytest.mark.parametrize(
    ("limits", "unknown"),
    [
        ({"nvidia.com/bf2_sf": 1}, ("nvidia.com/bf2_sf",)),
        ({"nvidia.com/mig-1g.10gb.extra!": 1}, ("nvidia.com/mig-1g.10gb.extra!",)),
        ({"xnvidia.com/gpu": 1}, ()),
        ({"nvidia.com/gpu.fake": 0}, ()),
        ({"example.com/widget": 1}, ()),
        ({"openshift.io/UPPER": 1}, ()),
    ],
)
def test_names_without_entry_are_reported_in_accelerator_domains_only(limits, unknown):
    found = asks(pod(limits), CATALOGUE)
    assert (found.accelerators, found.unknown) == ((), unknown)


def test_later_entries_override_and_extend():
    extended = CATALOGUE.extended(
        [
            Entry(Kind.SHARED, "NVIDIA", name="nvidia.com/gpu", units_per_device=0),
            Entry(Kind.DEVICE, "NVIDIA", pattern=r"openshift\.io/gpu\d"),
        ]
    )
    assert extended.find("nvidia.com/gpu").kind is Kind.SHARED
    assert extended.find("openshift.io/gpu1").kind is Kind.DEVICE, "a policy's pattern is tried before the shipped ones"
    assert extended.find("openshift.io/vf").kind is Kind.NIC
    assert CATALOGUE.find("nvidia.com/gpu") is GPU


def test_invented_names_do_not_pile_up():
    catalogue = Catalogue([GPU])
    for index in range(10_000):
        assert catalogue.find(f"nvidia.com/{index}") is None
    assert len(catalogue._memo) <= 4096
    assert catalogue.find("nvidia.com/" + "x" * 1000) is None
    assert not any(len(name) > 400 for name in catalogue._memo)


@given(st.text(max_size=40))
def test_lookup_is_the_same_twice_and_never_fails(name):
    assert CATALOGUE.find(name) is CATALOGUE.find(name)
    assert isinstance(CATALOGUE.is_suspicious(name), bool)


@given(st.dictionaries(st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", "cpu"]), st.integers(0, 9)))
def test_the_order_of_names_does_not_matter(limits):
    backwards = dict(reversed(limits.items()))
    forwards = {(a.resource, a.units, a.devices) for a in asks(pod(limits), CATALOGUE).accelerators}
    assert forwards == {(a.resource, a.units, a.devices) for a in asks(pod(backwards), CATALOGUE).accelerators}
