"""`numalign certs` from its arguments to its output, against a small API server; tests/e2e has a real one."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.apiserver import CONFIGURATIONS, ApiServer, serving
from webhook.cli.group import numalign

AUTHORITY = "/api/v1/namespaces/numalign-system/secrets/numalign-authority"
MUTATING = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/numalign"

Run = Callable[..., Result]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving() as started:
        yield started


@pytest.fixture
def certs(server: ApiServer, tmp_path: Path) -> Run:
    kubeconfig = server.kubeconfig(tmp_path)

    def run(*words: object) -> Result:
        return CliRunner().invoke(numalign, ["certs", *map(str, words), "--kubeconfig", str(kubeconfig)])

    return run


def bundles(server: ApiServer) -> set[str]:
    entries = [entry for path, each in server.objects.items() if path.startswith(CONFIGURATIONS) for entry in each["webhooks"]]
    return {base64.b64decode(entry["clientConfig"].get("caBundle", "")).decode() for entry in entries}


def authority(server: ApiServer) -> str:
    return base64.b64decode(server.objects[AUTHORITY]["data"]["ca.crt"]).decode()


def test_init_makes_one_authority_and_has_it_trusted(server: ApiServer, certs: Run) -> None:
    server.register("pods", "claims")
    done = certs("init")
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"Secret numalign-system/numalign-authority: the authority is valid until [-0-9: ]+ UTC\n", done.output)
    assert bundles(server) == {authority(server)}
    before = server.objects[AUTHORITY]
    assert certs("init").output == done.output
    assert server.objects[AUTHORITY] == before


def test_init_before_anything_is_registered(server: ApiServer, certs: Run) -> None:
    assert certs("init").exit_code == 0
    assert list(server.objects) == [AUTHORITY]


def test_init_replace_makes_another_one(server: ApiServer, certs: Run) -> None:
    server.register("pods")
    assert certs("init", "--replace").exit_code == 0  # where there is none, too
    first = authority(server)
    server.objects[AUTHORITY]["data"]["tls.crt"] = base64.b64encode(b"damaged").decode()
    damaged = certs("init")
    assert damaged.exit_code == 2
    assert "holds no authority" in damaged.output
    assert "numalign certs init --replace" in damaged.output
    assert certs("init", "--replace").exit_code == 0
    assert authority(server) != first
    assert bundles(server) == {authority(server)}


def test_other_names(server: ApiServer, certs: Run) -> None:
    assert certs("init", "--namespace", "elsewhere", "--secret", "ca").exit_code == 0
    assert list(server.objects) == ["/api/v1/namespaces/elsewhere/secrets/ca"]


def test_show_tells_whether_it_is_trusted(server: ApiServer, certs: Run) -> None:
    server.register("pods")
    certs("init")
    shown = certs("show")
    assert (shown.exit_code, shown.output.count(" trusts it")) == (0, 2)
    del server.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"]
    shown = certs("show")
    assert shown.exit_code == 1
    assert "does not trust it (yet): its calls fail" in shown.output
    data = json.loads(certs("show", "-o", "json").output)
    assert data["trusted"] == {"MutatingWebhookConfiguration": False, "ValidatingWebhookConfiguration": True}
    assert [row["role"] for row in data["authority"]] == ["current"]


def test_show_where_nothing_is_registered_or_made(server: ApiServer, certs: Run) -> None:
    missing = certs("show")
    assert missing.exit_code == 2
    assert "there is no Secret numalign-system/numalign-authority; `numalign certs init` makes it" in missing.output
    certs("init")
    shown = certs("show")
    assert shown.exit_code == 0
    assert "No webhook configuration is registered: no pod reaches the webhook." in shown.output
    assert not any(method != "GET" for method, path in server.calls if path.startswith(CONFIGURATIONS))


def test_rotate_announces_one_at_a_time(server: ApiServer, certs: Run) -> None:
    server.register("pods")
    assert certs("rotate").exit_code == 2
    certs("init")
    before = authority(server)
    done = certs("rotate")
    assert done.exit_code == 0
    assert "a new authority is announced" in done.output
    assert authority(server).startswith(before)
    assert authority(server).count("BEGIN CERTIFICATE") == 2
    assert bundles(server) == {authority(server)}
    assert [row["role"] for row in json.loads(certs("show", "-o", "json").output)["authority"]] == ["current", "next"]
    again = certs("rotate")
    assert (again.exit_code, again.output) == (0, "a rotation is under way already\n")


@pytest.mark.parametrize("words", [("init",), ("show",), ("rotate",)])
def test_what_the_api_server_says_is_one_line_and_exit_code_2(server: ApiServer, certs: Run, words: tuple[str, ...]) -> None:
    server.forbidden.add(AUTHORITY)
    done = certs(*words)
    assert (done.exit_code, done.output) == (2, f"you may not GET {AUTHORITY}\n")


@pytest.mark.parametrize("words", [("init",), ("show",), ("rotate",)])
def test_an_api_server_that_is_not_there(tmp_path: Path, words: tuple[str, ...]) -> None:
    with serving() as gone:
        kubeconfig = gone.kubeconfig(tmp_path)
    done = CliRunner().invoke(numalign, ["certs", *words, "--kubeconfig", str(kubeconfig)])
    assert done.exit_code == 2
    assert "the API server was not reached" in done.output
    assert "Traceback" not in done.output


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(numalign, ["certs", "show", "--kubeconfig", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "Name one with --kubeconfig FILE." in done.output


def keep(certs: Run, directory: Path, *more: object) -> Result:
    return certs("keep", "--once", "--dir", directory / "tls", *more)


def test_a_round_of_keep_leaves_a_certificate_that_serves(server: ApiServer, certs: Run, tmp_path: Path) -> None:
    server.register("pods")
    done = keep(certs, tmp_path)
    assert done.exit_code == 0, done.output
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls" / "tls.crt", tmp_path / "tls" / "tls.key")
    assert bundles(server) == {authority(server)}
    before = (tmp_path / "tls" / "tls.crt").read_text()
    assert keep(certs, tmp_path).exit_code == 0
    assert (tmp_path / "tls" / "tls.crt").read_text() == before


def test_a_round_that_fails_says_so_and_leaves_with_1(server: ApiServer, certs: Run, tmp_path: Path) -> None:
    server.forbidden.add(AUTHORITY)
    done = keep(certs, tmp_path)
    assert done.exit_code == 1
    assert not (tmp_path / "tls" / "tls.crt").exists()


def test_keep_writes_the_drift(server: ApiServer, certs: Run, tmp_path: Path) -> None:
    server.register("pods")
    drift = tmp_path / "drift"
    assert keep(certs, tmp_path, "--drift-file", drift).exit_code == 0
    assert "MutatingWebhookConfiguration.pods: not one of ours" in drift.read_text().splitlines()


def test_keep_writes_devices_even_where_it_may_not_read_them(server: ApiServer, certs: Run, tmp_path: Path) -> None:
    """The server would not start without the file."""
    devices = tmp_path / "devices.json"
    server.forbidden.add("/apis/resource.k8s.io/v1/resourceslices")
    assert keep(certs, tmp_path, "--devices-file", devices).exit_code == 0
    assert json.loads(devices.read_text())["items"] == []
