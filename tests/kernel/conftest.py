"""Tests on a real kernel: each runs in a private network namespace, or says why it cannot."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.iptables.backend import IptablesBackend, IptablesLoader
from backends.model.flow import Flow, Send, Step
from backends.model.node import Node, node_from_json
from backends.model.outcome import FlowResult, Outcome
from backends.model.packet import Packet
from backends.replay.session import KernelSession, open_session
from backends.testbed.command import find_tool
from nfparity.snapshot import Variant
from tests.kernel.helpers.availability import require
from translate.ir import Family, Protocol, parse_address

_HERE = Path(__file__).parent
_KIND = _HERE.parent / "corpus" / "rulesets" / "kind-node"


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts what it puts into the background; the commands under test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _missing() -> str | None:
    if os.geteuid():
        return "needs root"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun"
    if find_tool("nft") is None:
        return "needs nft (Debian package nftables)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = _missing()
    for item in items:
        if _HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.kernel)
        if missing is not None:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def kind_node() -> Node:
    """The kind cluster's worker."""
    return node_from_json((_KIND / "worker.json").read_text(), name="worker.json")


@pytest.fixture(scope="session")
def kind_rules() -> str:
    return (_KIND / "rules.iptables-save").read_text()


@pytest.fixture(scope="module", params=["iptables-legacy", "iptables-nft"])
def backend_name(request: pytest.FixtureRequest) -> str:
    require(IptablesBackend(request.param))
    return str(request.param)


@pytest.fixture(scope="module", params=list(Variant))
def variant(request: pytest.FixtureRequest) -> Variant:
    """Each place in the kernel where iptables rules can be."""
    require(IptablesBackend(f"iptables-{request.param}"))
    return Variant(request.param)


@pytest.fixture(scope="module")
def opened(backend_name: str) -> Iterator[Callable[[Node, str], KernelSession]]:
    """Opens sessions that end with the module: ``opened(node, iptables_save_text)``."""
    with ExitStack() as stack:
        yield lambda node, text: stack.enter_context(open_session(node, IptablesLoader(backend_name, text)))


class Flows:
    """Short ways to write flows, and to run one."""

    def __init__(self) -> None:
        self._count = 0

    @staticmethod
    def ip(text: str) -> int:
        return parse_address(Family.IP, text)

    def packet(self, proto: int, src: str, dst: str, **fields: Any) -> Packet:
        start = Packet(family=Family.IP, src=self.ip(src), dst=self.ip(dst), proto=proto)
        return replace(start, **fields)

    def udp(self, src: str, dst: str, dport: int, **fields: Any) -> Packet:
        return self.packet(Protocol.UDP, src, dst, **{"sport": 40000, "dport": dport, **fields})

    def tcp(self, src: str, dst: str, dport: int, **fields: Any) -> Packet:
        return self.packet(Protocol.TCP, src, dst, **{"sport": 40000, "dport": dport, **fields})

    def flow(self, packet: Packet, entry: str | None, *then: Step) -> Flow:
        self._count += 1
        return Flow(id=f"flow-{self._count}", steps=(Send(packet=packet, entry=entry), *then))

    def run(
        self, session: KernelSession, packet: Packet, entry: str | None, *then: Step
    ) -> tuple[Outcome, ...]:
        """Replay one flow, and insist that the kernel did nothing worth a note."""
        (result,) = session.replay([self.flow(packet, entry, *then)])
        assert result.notes == ()
        return self.outcomes(result)

    @staticmethod
    def outcomes(result: FlowResult) -> tuple[Outcome, ...]:
        (branch,) = result.branches
        return branch.outcomes


@pytest.fixture(scope="session")
def flows() -> Flows:
    return Flows()
