"""Requests to the API server, sent with kubectl: it knows the address, the credentials and the proxies."""

from __future__ import annotations

import json
import re
from typing import Any, Sequence

from nfparity.kubectl.interruption import Interruption

__all__ = ["Client", "RequestError"]

_REASON = re.compile(r"Error from server(?: \((\w+)\))?: ?(.*)", re.DOTALL)
_LIMIT = "--request-timeout=30s"


class RequestError(Exception):
    """A request that failed. ``reason`` is the API server's, such as NotFound, or empty."""

    def __init__(self, message: str) -> None:
        match = _REASON.search(message)
        self.reason = (match[1] or "") if match else ""
        super().__init__((match[2] if match and match[2] else message) or "kubectl failed without a message")


class Client:
    """kubectl with its options; paths are those of the API."""

    def __init__(self, words: Sequence[str], interruption: Interruption) -> None:
        self._words = tuple(words)
        self._interruption = interruption

    def get(self, path: str, *, interruptible: bool = True) -> Any:
        """Return an object, or a list of objects."""
        return json.loads(self._run("get", path, interruptible=interruptible))

    def log(self, path: str) -> str:
        """Return the log of a container."""
        return self._run("get", path, interruptible=True).decode("utf-8", "replace")

    def create(self, path: str, item: Any) -> None:
        """Create an object; no signal interrupts it."""
        self._run("create", path, "-f", "-", data=json.dumps(item).encode(), interruptible=False)

    def delete(self, path: str) -> None:
        """Delete an object; no signal interrupts it, and it is no error if there is no such object."""
        try:
            self._run("delete", path, interruptible=False)
        except RequestError as e:
            # Conflict: a namespace that is already being deleted.
            if e.reason not in ("NotFound", "Conflict"):
                raise

    def _run(self, verb: str, path: str, *more: str, data: bytes = b"", interruptible: bool) -> bytes:
        words = [*self._words, _LIMIT, verb, "--raw", path, *more]
        done = self._interruption.run(words, data, interruptible=interruptible)
        if done.status != 0:
            raise RequestError(done.err)
        return done.out
