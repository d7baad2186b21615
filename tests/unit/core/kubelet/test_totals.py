"""What a pod's containers need together."""

import pytest

from webhook.core.containers import Kind
from webhook.core.kubelet.totals import pod_total

INIT, SIDECAR, APP = Kind.INIT, Kind.SIDECAR, Kind.APP


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], 0),
        ([(APP, 2), (APP, 3)], 5),
        ([(INIT, 9), (APP, 2)], 9),
        ([(INIT, 4), (INIT, 9), (APP, 2)], 9),
        ([(SIDECAR, 1), (APP, 2)], 3),
        ([(SIDECAR, 1), (INIT, 9), (APP, 2)], 10),
        ([(INIT, 9), (SIDECAR, 1), (APP, 2)], 9),
        ([(SIDECAR, 1), (SIDECAR, 2), (INIT, 0), (APP, 0)], 3),
    ],
)
def test_the_most_that_runs_at_once(containers: list[tuple[Kind, int]], expected: int):
    assert pod_total((kind, {"cpu": amount}) for kind, amount in containers).get("cpu", 0) == expected


def test_resources_do_not_mix():
    assert pod_total([(INIT, {"gpu": 4}), (APP, {"cpu": 2})]) == {"gpu": 4, "cpu": 2}
