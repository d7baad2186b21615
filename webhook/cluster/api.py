"""Raw JSON to and from an API server, over the `kubernetes` client's connections and credentials.

Objects stay the dicts they came as: the client's typed models would drop or refuse fields that are newer than they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from webhook.cluster.errors import ClusterError

FIELD_MANAGER: Final = "numalign"
CALL_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 300
SILENCE_SECONDS: Final = 100.0
"""Bookmarks come about once a minute; a connection on which nothing comes for longer is dead."""

_APPLY: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"

Json = dict[str, Any]


class Api:
    """Calls to one API server as one user. Thread-safe."""

    def __init__(self, connection: client.ApiClient) -> None:
        self._client = connection

    def get(self, path: str) -> Json:
        """Return the object at `path`.

        Raises:
            ClusterError: the call failed.
        """
        return self.call("GET", path)

    def create(self, path: str, obj: Mapping[str, Any], **query: str) -> Json:
        """Create `obj` in the collection `path` and return it as stored.

        Raises:
            ClusterError: the call failed; `is_conflict` where it exists.
        """
        return self.call("POST", path, obj, query={"fieldManager": FIELD_MANAGER, **query})

    def replace(self, path: str, obj: Mapping[str, Any]) -> Json:
        """Replace the object at `path` and return it as stored.

        Raises:
            ClusterError: the call failed; `is_conflict` where it is no longer at `obj`'s resourceVersion.
        """
        return self.call("PUT", path, obj, query={"fieldManager": FIELD_MANAGER})

    def apply(self, path: str, obj: Mapping[str, Any], *, force: bool = False) -> Json:
        """Apply `obj` server-side under our field manager and return the result.

        Raises:
            ClusterError: the call failed; `is_conflict` where another manager owns a field and `force` is off.
        """
        return self.call(
            "PATCH", path, obj, query={"fieldManager": FIELD_MANAGER, "force": str(force).lower()}, content_type=_APPLY
        )

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
        seconds: float = CALL_SECONDS,
    ) -> Json:
        """Return the JSON object that the API server answers with.

        Raises:
            ClusterError: the call failed.
        """
        answer = self._answer(method, path, body, query or {}, content_type, seconds)
        with _reading(f"{method} {path}"):
            return dict(json.loads(bytes(answer.read())))

    def watch(self, path: str, version: str) -> Iterator[Json]:
        """Yield what happens in the collection `path` from a version on, until the API server ends it after some minutes.

        Raises:
            ClusterError: the call failed, or nothing came for longer than bookmarks are apart.
        """
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        answer = self._answer("GET", path, None, query, _JSON, (CALL_SECONDS, SILENCE_SECONDS))
        with _reading(f"watching {path}"), closing(answer.response):
            for line in answer.response:
                yield dict(json.loads(line))

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        content_type: str,
        seconds: float | tuple[float, float],
    ) -> Any:
        """Return an answer of which nothing but the head has been read."""
        method, url, headers, payload, _ = self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Accept": _JSON, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        with _reading(f"{method} {path}"):
            try:
                answer: Any = self._client.call_api(method, url, headers, payload, _request_timeout=seconds)
            except ApiException as error:
                raise _failure(int(error.status or 0), str(error.body or error.reason)) from error
            if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                raise _failure(answer.status, bytes(answer.read()).decode(errors="replace"))
            return answer


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterError(f"{what}: the API server was not reached: {error}") from error


def _failure(status: int, body: str) -> ClusterError:
    """The API server explains itself in a Status object; proxies before it need not."""
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        message = body.strip()[:500]
    return ClusterError(str(message), status)


def connect(kubeconfig: Path | None = None) -> Api:
    """Return the API server that a kubeconfig names, else that of the cluster we run in, else kubectl's own.

    Raises:
        ClusterError: no such file, or nothing says where an API server is.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is not None:
            config.load_kube_config(str(kubeconfig), client_configuration=settings, persist_config=False)  # type: ignore[no-untyped-call]
        else:
            _load_default(settings)
    except (config.ConfigException, OSError) as error:
        raise ClusterError(f"no cluster to talk to: {error} Name one with --kubeconfig FILE.") from error
    settings.retries = False  # whoever calls knows what may be tried again, and when
    return Api(client.ApiClient(settings))


def _load_default(settings: client.Configuration) -> None:
    try:
        config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
    except config.ConfigException:
        config.load_kube_config(client_configuration=settings, persist_config=False)  # type: ignore[no-untyped-call]
