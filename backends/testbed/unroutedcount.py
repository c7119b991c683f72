"""Counts the packets that came in and had no route."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["UnroutedCount"]

_STATISTICS: Final = "/proc/thread-self/net/netstat"
_GROUP: Final = b"IpExt:"
_NAME: Final = b"InNoRoutes"


class UnroutedCount:
    """The counter ``InNoRoutes`` of the network namespace in which it was opened.

    The kernel raises it for each IPv4 packet without a route, also if it does not answer (``ip_error``).
    """

    def __init__(self) -> None:
        self._file = os.open(_STATISTICS, os.O_RDONLY | os.O_CLOEXEC)
        names, _ = self._lines()
        self._place = names.index(_NAME)

    def read(self) -> int:
        """Return the number of packets so far."""
        _, values = self._lines()
        return int(values[self._place])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _lines(self) -> tuple[list[bytes], list[bytes]]:
        """Return the names and the values of the group of the counter."""
        text = b""
        while part := os.pread(self._file, 1 << 16, len(text)):
            text += part
        names, values = [line.split() for line in text.splitlines() if line.startswith(_GROUP)]
        return names, values
