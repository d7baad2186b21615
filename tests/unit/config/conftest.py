from copy import deepcopy

import pytest

DOCUMENT = {
    "apiVersion": "numalign.io/v1alpha1",
    "kind": "NodeClass",
    "metadata": {"name": "box"},
    "spec": {
        "selector": {"example.com/machine": "box"},
        "kubernetes": "1.37",
        "topology": {
            "sockets": 2,
            "threadsPerCore": 2,
            "numaNodes": [
                {"id": 0, "cpus": "0-3,8-11", "memory": "64Gi", "devices": {"nvidia.com/gpu": 2}},
                {"id": 1, "cpus": "4-7,12-15", "memory": "64Gi", "devices": {"nvidia.com/gpu": 2}},
            ],
        },
        "kubelet": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "restricted",
            "systemReserved": {"cpu": "2", "memory": "2Gi"},
        },
    },
}


@pytest.fixture
def document():
    """A sound NodeClass document, to spoil at will."""
    return deepcopy(DOCUMENT)
