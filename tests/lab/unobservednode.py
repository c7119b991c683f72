"""The node of a measurement, which copies no packet for an observer."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from backends.model.node import Node
from backends.testbed.tapnode import TapNode
from translate.ir import Family

__all__ = ["UnobservedNode"]


class UnobservedNode(TapNode):
    """A :class:`TapNode` without its packet socket: packets that leave are read from the devices only."""

    def __init__(self, node: Node, family: Family = Family.IP) -> None:
        super().__init__(node, family)
        self._poll.unregister(self._sniffer.fileno())
        self._sniffer.close()

    def flood(self, device: str, packets: Sequence[bytes]) -> float:
        """Send IP packets into ``device`` in order, and return the CPU seconds that the sending took.

        Packets that leave wait to be drained, and are lost once the queue of their device is full.
        """
        fd, header = self._taps[device], self._headers[device]
        frames = [header + packet for packet in packets]
        write, began = os.write, time.thread_time()
        for frame in frames:
            write(fd, frame)
        return time.thread_time() - began
