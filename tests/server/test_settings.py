from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from gunicorn.config import Config

from webhook.server import gunicorn_config
from webhook.server.health import Drain
from webhook.server.settings import Settings

NO_DRAIN = Drain(None)


def made(settings: Settings, drain: Drain = NO_DRAIN) -> Config:
    config = Config()
    for name, value in gunicorn_config.options(settings, 3, drain, lambda _: None).items():
        config.set(name, value)
    return config


def test_gunicorn_takes_every_setting() -> None:
    config = made(Settings(cert=Path("a"), key=Path("b"), threads=8))
    assert config.worker_class.__name__ == "PatientWorker"
    assert (config.workers, config.threads, config.max_requests) == (1, 8, 0)
    assert config.keepalive > 90, "the API server's transport keeps idle connections for 90 s"
    assert config.graceful_timeout + 10 <= 30
    assert config.control_socket_disable
    assert config.is_ssl


def test_the_drain_file_closes_connections(tmp_path: Path) -> None:
    file = tmp_path / "drain"
    config = made(Settings(cert=Path("a"), key=Path("b")), Drain(file))
    closed: list[bool] = []
    request = SimpleNamespace(force_close=lambda: closed.append(True))
    config.pre_request(None, request)
    assert not closed
    file.touch()
    config.pre_request(None, request)
    assert closed
