"""The steps of a run: nodes, namespace, pods and logs; then the removal of everything that was created."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import Any, Callable, Sequence
from urllib.parse import quote

from harness.files.errors import CaptureError
from nfparity.capture.armour import dearmoured
from nfparity.kubectl.client import Client, RequestError
from nfparity.kubectl.interruption import Interruption
from nfparity.kubectl.objects import SELECTOR, namespace, pinned, pod

__all__ = ["Run", "remove_leftovers"]

_NODES = "/api/v1/nodes"
_NAMESPACES = "/api/v1/namespaces"
_HOPELESS = (
    *("ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
    *("CreateContainerConfigError", "RunContainerError"),
)
"""Reasons of a waiting container that will never start."""

_REMOVAL_LIMIT = 90.0
"""Seconds for the removal of the objects that were created."""


class Run:
    """One run: snapshots of nodes by name, and the reasons for nodes without one."""

    def __init__(
        self, client: Client, interruption: Interruption, say: Callable[[str], None], *, image: str,
        space: str | None, limit: int, anonymise: bool,
    ) -> None:  # fmt: skip
        assert pinned(image)
        self.failures: dict[str, str] = {}
        self._client = client
        self._interruption = interruption
        self._say = say
        self._image = image
        self._limit = limit
        self._anonymise = anonymise
        self._id = secrets.token_hex(4)
        self._own_space = space is None
        self._space = f"nfparity-{self._id}" if space is None else space
        self._started: list[str] = []
        """Paths of objects whose creation was requested, and which may therefore exist."""

    def nodes(self, names: Sequence[str]) -> list[str]:
        """Return the nodes to capture: those named, or all. A node that is not ready is a failure."""
        if names:
            items = [self._client.get(f"{_NODES}/{quote(name)}") for name in names]
        else:
            items = self._client.get(_NODES)["items"]
        wanted = []
        for item in items:
            name = item["metadata"]["name"]
            if item["metadata"].get("labels", {}).get("kubernetes.io/os", "linux") != "linux":
                self._say(f"{name}: does not run Linux; left out")
            elif _condition(item, "Ready") != "True":
                self.failures[name] = "the node is not ready"
            else:
                wanted.append(name)
        return sorted(set(wanted))

    def capture(self, nodes: Sequence[str], keep: Callable[[str, bytes], None]) -> None:
        """Capture the nodes and hand each snapshot to ``keep``; remove everything, however this ends."""
        try:
            self._create_space()
            waiting = self._create_pods(nodes)
            self._collect(waiting, keep)
        finally:
            self._remove()

    def _create_space(self) -> None:
        if self._own_space:
            self._interruption.check()
            self._started.append(f"{_NAMESPACES}/{self._space}")
            self._client.create(_NAMESPACES, namespace(self._space))

    def _create_pods(self, nodes: Sequence[str]) -> dict[str, str]:
        """Create a pod for each node; return the node of each pod."""
        waiting = {}
        for number, node in enumerate(nodes):
            name = f"nfparity-{self._id}-{number}"
            item = pod(name, node=node, image=self._image, seconds=self._limit, anonymise=self._anonymise)
            self._interruption.check()
            if not self._own_space:
                self._started.append(f"{self._pods}/{name}")
            try:
                self._create_pod(item)
            except RequestError as e:
                self.failures[node] = f"its pod cannot be created: {e}"
            else:
                waiting[name] = node
        return waiting

    def _create_pod(self, item: Any) -> None:
        """Create a pod. A new namespace refuses pods until it has a service account, a moment later."""
        patience = _Patience(self._interruption, 30)
        while True:
            try:
                self._client.create(self._pods, item)
                return
            except RequestError as e:
                if "serviceaccount" not in str(e) or patience.ended:
                    raise
            patience.wait()

    def _collect(self, waiting: dict[str, str], keep: Callable[[str, bytes], None]) -> None:
        """Read the log of each pod as soon as it has ended."""
        patience = _Patience(self._interruption, self._limit)
        while waiting:
            listed = self._client.get(f"{self._pods}?labelSelector={SELECTOR}")["items"]
            states = {item["metadata"]["name"]: item for item in listed}
            for name, node in list(waiting.items()):
                failure = _failure(states.get(name))
                if failure is None and states[name]["status"].get("phase") != "Succeeded":
                    continue
                del waiting[name]
                patience.restart()
                try:
                    if failure is not None:
                        raise CaptureError(failure + self._message(name))
                    keep(node, dearmoured(self._log(name)))
                except (CaptureError, RequestError) as e:
                    self.failures[node] = str(e)
            if waiting and patience.ended:
                self.failures.update((node, "its pod has not ended in time") for node in waiting.values())
                return
            if waiting:
                patience.wait()

    def _log(self, name: str) -> str:
        return self._client.log(f"{self._pods}/{name}/log")

    def _message(self, name: str) -> str:
        """Return the end of a failed pod's log, if it has one."""
        try:
            lines = self._log(name).split("\n")
        except RequestError:
            return ""
        messages = [line for line in lines if line.strip()]
        return f": {messages[-1]}" if messages else ""

    def _remove(self) -> None:
        """Delete the objects that were created, and wait until they are gone. Raises RequestError."""
        try:
            _remove(self._client, self._interruption, self._started)
        except RequestError as e:
            names = " and ".join(path[len("/api/v1/") :] for path in self._started)
            raise RequestError(f"{names} may be left in the cluster: {e}") from e

    @property
    def _pods(self) -> str:
        return f"{_NAMESPACES}/{self._space}/pods"


def remove_leftovers(client: Client, interruption: Interruption) -> list[str]:
    """Remove the namespaces of runs that were killed; return their names."""
    items = client.get(f"{_NAMESPACES}?labelSelector={SELECTOR}")["items"]
    names = [item["metadata"]["name"] for item in items]
    _remove(client, interruption, [f"{_NAMESPACES}/{name}" for name in names])
    return names


def _remove(client: Client, interruption: Interruption, paths: Sequence[str]) -> None:
    """Delete objects, repeat requests that fail, and wait until no object is left."""
    patience = _Patience(interruption, _REMOVAL_LIMIT, interruptible=False)
    left = list(paths)
    for path in paths:
        _again(patience, partial(client.delete, path))
    while left:
        left = [path for path in left if _again(patience, partial(_exists, client, path))]
        if left and patience.ended:
            names = ", ".join(left)
            raise RequestError(f"{names}: being deleted, but still there after {_REMOVAL_LIMIT:.0f} seconds")
        if left:
            patience.wait()


def _again(patience: _Patience, action: Callable[[], Any]) -> Any:
    while True:
        try:
            return action()
        except RequestError as e:
            if patience.ended or e.reason in ("Forbidden", "Unauthorized"):
                raise
        patience.wait()


def _exists(client: Client, path: str) -> bool:
    try:
        client.get(path, interruptible=False)
    except RequestError as e:
        if e.reason == "NotFound":
            return False
        raise
    return True


def _condition(item: Any, kind: str) -> str | None:
    for condition in item.get("status", {}).get("conditions", ()):
        if condition["type"] == kind:
            return str(condition["status"])
    return None


def _failure(item: Any) -> str | None:
    """Return why a pod will give no snapshot; None if it may."""
    if item is None:
        return "its pod was deleted"
    status = item.get("status", {})
    if status.get("phase") == "Failed":
        words = [status.get("reason"), status.get("message")]
        for container in status.get("containerStatuses", ()):
            ended = container.get("state", {}).get("terminated", {})
            if "exitCode" in ended:
                words.append(f"the capture ended with status {ended['exitCode']}")
        return ": ".join(filter(None, words)) or "its pod failed"
    for container in status.get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in _HOPELESS:
            return ": ".join(filter(None, [waiting["reason"], waiting.get("message")]))
    return None


class _Patience:
    """Pauses between requests, which grow to two seconds, and the end of waiting."""

    def __init__(self, interruption: Interruption, limit: float, *, interruptible: bool = True) -> None:
        self._interruption = interruption
        self._limit = limit
        self._interruptible = interruptible
        self.restart()

    def restart(self) -> None:
        """Begin again with short pauses and the full time, because something has happened."""
        self._pause = 0.1
        self._end = time.monotonic() + self._limit

    @property
    def ended(self) -> bool:
        """Return whether the limit is reached."""
        return time.monotonic() > self._end

    def wait(self) -> None:
        """Pause. Raises SignalError at a signal, if it may be interrupted."""
        self._interruption.wait(self._pause, interruptible=self._interruptible)
        self._pause = min(2.0, self._pause * 1.5)
