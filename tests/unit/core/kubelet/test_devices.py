"""The Device Manager."""

import pytest

from tests.unit.core.kubelet.make import GPU, NIC, container, device_manager, devices, hints, pod, written
from webhook.core.containers import Kind
from webhook.core.kubelet.chance import Chooser, Matters, always
from webhook.core.kubelet.contract import ContainerView, Hint, Refusal
from webhook.core.kubelet.devices import DeviceManager, DevicePolicy

FOUR_EACH = devices(gpu={1: 4, 2: 4})
ANY = Hint(None, preferred=False)


def gpu_hints(policy: DevicePolicy, count: int, *, singles: bool = False) -> list[str] | None:
    view = container(gpu=count)
    found = device_manager(policy, pod(view)).container_hints(view, singles=singles)
    assert found is not None
    return written(found[GPU])


@pytest.mark.parametrize(
    ("policy", "count", "expected"),
    [
        (FOUR_EACH, 0, ["0T", "1T", "0,1F"]),
        (FOUR_EACH, 4, ["0T", "1T", "0,1F"]),
        (FOUR_EACH, 5, ["0,1T"]),
        (FOUR_EACH, 9, []),
        (devices(gpu={0: 8}), 5, None),
        (devices(gpu={3: 8}), 5, ["0T", "1T", "0,1F"]),
        (devices(gpu={1: 4, 0: 4}), 5, []),
        (devices(gpu={1: 4, 0: 4}), 4, ["0T"]),
        (devices(gpu={2: 4}), 4, ["1T"]),
        (devices(35, gpu={2: 4}), 4, ["1T", "0,1F"]),
        (devices(gpu={}), 0, None),
    ],
)
def test_hints(policy: DevicePolicy, count: int, expected: list[str] | None):
    assert gpu_hints(policy, count) == expected


@pytest.mark.parametrize("count", range(10))
@pytest.mark.parametrize("policy", [FOUR_EACH, devices(gpu={3: 8}), devices(gpu={1: 4, 0: 4}), devices(35, gpu={2: 4})])
def test_hints_of_single_nodes_are_those_among_all(policy: DevicePolicy, count: int):
    narrow = [text for text in gpu_hints(policy, count) or [] if text in ("0T", "1T")]

    assert gpu_hints(policy, count, singles=True) == narrow


def test_unknown_resources_are_ignored():
    view = container(nic=1)

    assert device_manager(FOUR_EACH, pod(view)).container_hints(view, singles=False) == {}


def test_many_nodes_do_not_matter_to_those_with_devices():
    assert gpu_hints(devices(nodes=40, gpu={1: 2, 2: 2}), 2) == ["0T", "1T", "0,1F"]
    assert gpu_hints(devices(34, nodes=40, gpu={1: 2, 2: 2}), 2, singles=True) == ["0T", "1T"]
    assert devices(34, nodes=40, gpu={1: 2, 2: 2}).fewest_nodes(GPU, 3) == 2


def test_the_pods_sum_counts_an_init_container_with_the_sidecars_before_it():
    view = pod(
        container("s", Kind.SIDECAR, gpu=1), container("i", Kind.INIT, gpu=4), container("a", gpu=3), container("b", gpu=1)
    )
    found = device_manager(FOUR_EACH, view).pod_hints(singles=False)

    assert found is not None
    assert written(found[GPU]) == ["0,1T"]


def allocate(manager: DeviceManager, *pairs: tuple[ContainerView, str]) -> list[Refusal | None]:
    return [manager.allocate(view, hints(hint)[0]) for view, hint in pairs]


def test_devices_near_the_hint_are_taken_first():
    view = container(gpu=6)
    manager = device_manager(FOUR_EACH, pod(view))

    assert allocate(manager, (view, "1T")) == [None]
    assert manager.held["main"][GPU] == (2, 4)


def test_devices_without_topology_are_taken_last():
    view = container(gpu=5)
    manager = device_manager(devices(gpu={0: 4, 1: 2, 2: 2}), pod(view))

    assert allocate(manager, (view, "0T")) == [None]
    assert manager.held["main"][GPU] == (1, 2, 2)


def test_what_an_init_container_had_is_used_again():
    init, app, late = container("i", Kind.INIT, gpu=3), container("a", gpu=4), container("b", gpu=4)
    manager = device_manager(FOUR_EACH, pod(init, app, late))

    assert allocate(manager, (init, "0T"), (app, "0T"), (late, "1T")) == [None, None, None]
    assert [manager.held[name][GPU] for name in "iab"] == [(3, 0), (4, 0), (0, 4)]


def test_what_a_sidecar_has_is_not_used_again():
    sidecar, app = container("s", Kind.SIDECAR, gpu=3), container("a", gpu=6)
    manager = device_manager(FOUR_EACH, pod(sidecar, app))

    first, second = allocate(manager, (sidecar, "0T"), (app, "0,1T"))
    assert first is None
    assert second is not None
    assert second.reason == "UnexpectedAdmissionError"
    assert "Requested: 6, Available: 5" in second.message


def test_hints_stay_on_the_nodes_of_what_can_be_used_again():
    init, app = container("i", Kind.INIT, gpu=1), container("a", gpu=4)
    manager = device_manager(FOUR_EACH, pod(init, app))
    manager.allocate(init, hints("1T")[0])

    found = manager.container_hints(app, singles=False)
    assert found is not None
    assert written(found[GPU]) == ["1T", "0,1F"]


def test_a_resource_without_devices_refuses_even_none_of_it():
    view = container(gpu=0)
    refusal = device_manager(devices(gpu={}), pod(view)).allocate(view, ANY)

    assert refusal is not None
    assert "no healthy devices present" in refusal.message


def certain(view: tuple[ContainerView, ...], hint: str, policy: DevicePolicy = FOUR_EACH) -> bool:
    """Allocate all containers under one hint, each time with other choices; compare what the last one's hints would be."""
    seen: list[object] = []

    def run(chooser: Chooser) -> bool:
        manager = DeviceManager(policy, pod(*view), chooser)
        for one in view[:-1]:
            manager.allocate(one, hints(hint)[0])
        seen.append(manager.container_hints(view[-1], singles=False))
        return seen[0] == seen[-1]

    return always(run, Matters(later=True, last=True), 256)


def test_which_devices_are_taken_is_chance_where_it_matters():
    first, last = container("a", gpu=2), container("b", gpu=4)

    assert certain((first, last), "0T")
    assert not certain((first, last), "0,1T")
    assert certain((container("a", gpu=8), last), "0,1T")
    assert certain((container("a", nic=1), last), "0,1T", devices(gpu={1: 4, 2: 4}, nic={1: 1, 2: 1}))


def test_init_containers_leave_no_chance_behind_unless_the_resource_is_used_later():
    init = container("i", Kind.INIT, gpu=2)
    chooser = Chooser()
    DeviceManager(FOUR_EACH, pod(init, container("a", cpu=1)), chooser).allocate(init, ANY)

    assert chooser.chances == 0


def test_which_of_an_init_containers_devices_an_app_takes_over_is_chance_but_not_which_another_init_container_does():
    init, again, app = container("i", Kind.INIT, gpu=8), container("j", Kind.INIT, gpu=1), container("a", gpu=1)
    manager = device_manager(FOUR_EACH, pod(init, again, app), script=(1,))

    assert allocate(manager, (init, "*F"), (again, "*F"), (app, "*F")) == [None, None, None]
    assert [manager.held[name][GPU] for name in "ija"] == [(4, 4), (1, 0), (0, 1)]


def test_too_many_choices_are_not_certain():
    policy = devices(nodes=12, gpu={1 << node: 2 for node in range(12)})
    view = tuple(container(name, gpu=12) for name in "ab")

    assert not certain(view, "*F", policy)


def test_fewest_nodes():
    policy = devices(nodes=3, gpu={1: 1, 2: 4, 4: 2}, nic={3: 2, 4: 2})

    assert [policy.fewest_nodes(GPU, count) for count in (0, 4, 5, 6, 7)] == [1, 1, 2, 2, 3]
    assert [policy.fewest_nodes(NIC, count) for count in (2, 3, 4)] == [1, 2, 2]
