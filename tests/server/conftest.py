from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.running import Running, started
from tls import selfsigned
from webhook.config.live import Live


@pytest.fixture(scope="session")
def live() -> Live:
    found = Live(all_builtin=True)
    assert found.status.ok, found.status.last_error
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> selfsigned.Files:
    return selfsigned.create(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def server(files: selfsigned.Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose state no test changes."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY)
    with started(files, "--policy", policy, "--threads", "8") as running:
        yield running


POLICY = """\
apiVersion: numalign.io/v1alpha1
kind: Policy
metadata: {name: test}
spec:
  mode: strict
  builtinClasses: [dgx-h100]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file
