import subprocess

import pytest

from tests.e2e.controlplane import binaries
from tests.e2e.controlplane.plane import ControlPlane, Done
from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.replica import NUMALIGN
from tests.e2e.rig.service import has_haproxy


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    try:
        found = binaries.find()
    except binaries.MissingError as error:
        pytest.skip(f"NO CONTROL PLANE: {error}")
    with ControlPlane(found, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture(scope="session")
def cluster(plane):
    if not has_haproxy():
        pytest.skip("NO SERVICE: install haproxy (Debian's package of that name)")
    with Cluster(plane) as installed:
        yield installed


@pytest.fixture(scope="session")
def numalign(plane):
    """Run our own command as the administrator."""

    def run(*args):
        command = [NUMALIGN, *args, "--kubeconfig", plane.kubeconfig]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return Done(done.returncode, done.stdout, done.stderr)

    return run
