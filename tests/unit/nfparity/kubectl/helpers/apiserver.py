"""A small API server: nodes, namespaces, pods and their logs, and signals at a chosen request."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

__all__ = ["Cluster", "Moment", "serve"]

_NAMESPACE: Final = re.compile(r"/api/v1/namespaces(?:/([\w.-]+))?")
_POD: Final = re.compile(r"/api/v1/namespaces/([\w.-]+)/pods(?:/([\w.-]+))?(/log)?")
_NODE: Final = re.compile(r"/api/v1/nodes(?:/([\w.-]+))?")
_DELAY: Final = 0.1
"""Seconds for a signal to be delivered before the server goes on; no result depends on it."""


class Moment(Enum):
    """The moment of an event in the course of a request."""

    ARRIVED = "arrived"
    DONE = "done"
    ANSWERED = "answered"


class RefusedError(Exception):
    """An answer other than 2xx."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass
class Cluster:
    """The state of the cluster, and what happens in it.

    ``log`` returns the log of a pod, or None if the pod never ends. ``event`` is called at each moment of
    each request with the number of the request.
    """

    nodes: list[dict[str, Any]]
    log: Callable[[Mapping[str, Any]], str | None]
    event: Callable[[int, Moment], None] = lambda number, moment: None
    namespaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The verbs and resources, as RBAC names them."""

    ended: Mapping[str, Any] = field(default_factory=lambda: {"phase": "Succeeded"})
    """The status of a pod at its end."""

    faults: dict[tuple[str, str], list[RefusedError]] = field(default_factory=dict)
    """Answers instead of an effect, by verb and resource; each is given once."""

    def handle(self, method: str, target: str, body: bytes) -> Any:
        """Carry out a request and return the answer: an object, or a log as text."""
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        if match := _NODE.fullmatch(parts.path):
            self._note("get" if match[1] else "list", "nodes")
            return self._listed(self.nodes, match[1])
        if match := _POD.fullmatch(parts.path):
            return self._pod(method, match[1], match[2], log=match[3] is not None, body=body, query=query)
        if match := _NAMESPACE.fullmatch(parts.path):
            return self._namespace(method, match[1], body, query)
        raise RefusedError(404, "NotFound", f"the server could not find {target}")

    def _note(self, verb: str, resource: str) -> None:
        self.requests.append((verb, resource))
        waiting = self.faults.get((verb, resource))
        if waiting:
            raise waiting.pop(0)

    def _namespace(self, method: str, name: str | None, body: bytes, query: Mapping[str, list[str]]) -> Any:
        match method:
            case "POST":
                self._note("create", "namespaces")
                item = json.loads(body)
                self.namespaces[item["metadata"]["name"]] = item | {"seen": 0}
                self.created.append(item)
                return item
            case "DELETE":
                self._note("delete", "namespaces")
                item = self._listed(list(self.namespaces.values()), name)
                item["going"] = True
                return item
            case _:
                self._note("get" if name else "list", "namespaces")
                if name is None:
                    return {"items": _selected(self.namespaces.values(), query)}
                item = self._listed(list(self.namespaces.values()), name)
                if item.pop("going", False):  # gone when it is looked at the next time
                    self.namespaces.pop(str(name))
                    self.pods = {key: pod for key, pod in self.pods.items() if key[0] != name}
                return item

    def _pod(
        self, method: str, space: str, name: str | None, *, log: bool, body: bytes,
        query: Mapping[str, list[str]],
    ) -> Any:  # fmt: skip
        match method:
            case "POST":
                self._note("create", "pods")
                parent = self._listed(list(self.namespaces.values()), space)
                parent["seen"] += 1
                if parent["seen"] == 1:
                    message = f'error looking up service account {space}/default: serviceaccount "default"'
                    raise RefusedError(403, "Forbidden", f"pods is forbidden: {message} not found")
                item = json.loads(body)
                self.created.append(item)
                self.pods[space, item["metadata"]["name"]] = item | {"status": {"phase": "Pending"}}
                return item
            case "DELETE":
                self._note("delete", "pods")
                self._found_pod(space, name)
                return self.pods.pop((space, str(name)))
        if log:
            self._note("get", "pods/log")
            text = self.log(self._found_pod(space, name))
            if text is None:
                raise RefusedError(400, "BadRequest", "container is waiting to start: ContainerCreating")
            return text
        if name is not None:
            self._note("get", "pods")
            return self._found_pod(space, name)
        self._note("list", "pods")
        listed = [pod for key, pod in self.pods.items() if key[0] == space]
        answer = json.dumps({"items": _selected(listed, query)})
        for pod in listed:  # it has ended when it is looked at the next time
            if pod["status"]["phase"] == "Pending" and self.log(pod) is not None:
                pod["status"] = self.ended
        return json.loads(answer)

    def _found_pod(self, space: str, name: str | None) -> dict[str, Any]:
        if (space, str(name)) not in self.pods:
            raise RefusedError(404, "NotFound", f'pods "{name}" not found')
        return self.pods[space, str(name)]

    def _listed(self, items: list[dict[str, Any]], name: str | None) -> Any:
        if name is None:
            return {"items": items}
        for item in items:
            if item["metadata"]["name"] == name:
                return item
        raise RefusedError(404, "NotFound", f'"{name}" not found')


def _selected(items: Any, query: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Return the objects with the labels of a selector ``KEY=VALUE``."""
    (selector,) = query.get("labelSelector", [""])
    if not selector:
        return list(items)
    key, _, value = selector.partition("=")
    return [item for item in items if item["metadata"].get("labels", {}).get(key) == value]


@contextmanager
def serve(cluster: Cluster) -> Iterator[str]:
    """Serve the API on a port of this machine; yield its address. One request is handled at a time."""
    lock = threading.Lock()
    count = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def answer(self) -> None:
            nonlocal count
            body = self.body()
            with lock:
                count += 1
                number = count
                cluster.event(number, Moment.ARRIVED)
                try:
                    result, code = cluster.handle(self.command, self.path, body), 200
                except RefusedError as e:
                    code = e.code
                    result = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
                    result |= {"reason": e.reason, "message": str(e), "code": e.code}
                cluster.event(number, Moment.DONE)
            data = (result if isinstance(result, str) else json.dumps(result)).encode()
            try:
                self.send_response(code)
                kind = "text/plain" if isinstance(result, str) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
            except OSError:
                return  # the client was interrupted
            cluster.event(number, Moment.ANSWERED)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pause() -> None:
    """Let a signal be delivered."""
    time.sleep(_DELAY)
