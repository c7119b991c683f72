"""The node under test itself: what leaves it is there as soon as what came in has been written."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from backends.model.link import device_mac
from backends.model.node import node_from_json
from backends.model.packet import Packet
from backends.replay.worker import Worker
from backends.testbed.command import die_with_parent
from backends.testbed.tapnode import QUEUE, TapNode
from backends.wire.frames import build
from translate.ir import Family, Protocol, parse_address

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

NODE: Final = '{"interfaces": {"in0": ["10.0.0.1/24"], "out0": ["10.1.0.1/24"]}}'
_ETHERTYPE: Final = 0x88B6  # "local experimental" (IEEE 802)
_AT_ONCE: Final = 50


@dataclass(frozen=True)
class Forward:
    """Forwards packets for so many seconds while somebody else sends by the same device."""

    seconds: float

    def run(self) -> tuple[int, int]:
        """Return how many packets were forwarded, and how many of them came out late."""
        tap = TapNode(node_from_json(NODE, name="node"), Family.IP)
        other = os.fork()
        if not other:
            _send_by("out0")
        try:
            return _forward(tap, self.seconds)
        finally:
            os.kill(other, signal.SIGKILL)
            os.waitpid(other, 0)


def _serve() -> Callable[[Forward], tuple[int, int]]:
    return Forward.run


def _send_by(device: str) -> None:
    """Send frames of no known kind, for ever; in few at a time, so that there is room for others."""
    die_with_parent()
    frame = device_mac(2).to_bytes(6, "big") * 2 + _ETHERTYPE.to_bytes(2, "big") + bytes(40)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((device, _ETHERTYPE))
        while True:
            for _ in range(_AT_ONCE):
                with contextlib.suppress(OSError):  # the queue is full
                    raw.send(frame)
            time.sleep(0.0002)


def _forward(tap: TapNode, seconds: float) -> tuple[int, int]:
    sent = late = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        packet = Packet(
            family=Family.IP,
            src=parse_address(Family.IP, "10.0.0.9"),
            dst=parse_address(Family.IP, "10.1.0.9"),
            proto=Protocol.UDP,
            sport=1024 + sent % 60000,
            dport=9,
        )
        tap.inject("in0", build(packet))
        sent += 1
        if not tap.drain(QUEUE):
            time.sleep(0.001)
            late += len(tap.drain(QUEUE))  # none: it was lost, as the device's queue was full
    return sent, late


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nobody else sends meanwhile")
def test_nothing_waits_for_another_processor_that_is_sending() -> None:
    """With a queueing discipline, a few of ten thousand packets come out after the write has returned."""
    with Worker(_serve) as worker:
        sent, late = worker.ask(Forward(3.0))
    assert sent > 1000
    assert not late
