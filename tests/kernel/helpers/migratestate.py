"""The state of a node with a migration: its rules, the migration's record, and the answers of its service."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

from backends.replay.worker import Worker
from nfparity.migrate.state import owned
from nfparity.migrate.state.journal import read_steps
from nfparity.migrate.state.place import MigrationPlace, here
from nfparity.migrate.state.record import Phase, Record
from nfparity.migrate.state.tables import save, split
from nfparity.persistent_state.reservedlog import ReservedLog
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import ENDPOINT, RULES, SERVICE, SIX, STATE
from tests.kernel.helpers.processes import children_of, wait_for
from tests.lab.traffic.host import Host, Request
from translate.errors import MachineError
from translate.ir import Family


@dataclass(frozen=True)
class NodeState:
    """The state of the node: ``iptables`` is the output of iptables-save for each family, without
    counters.
    """

    iptables: tuple[tuple[str, ...], ...]
    counters: str
    nft: tuple[bool, bool]
    phase: Phase | None
    answered: bool
    journal: tuple[str, ...]
    timer_log: str

    @property
    def is_old(self) -> bool:
        """True if only the old rules are loaded."""
        return self.iptables == OLD and not any(self.nft)


OLD: tuple[tuple[str, ...], ...] = tuple(
    tuple(line for name in sorted(split(text)) for line in split(text)[name].table_state)
    for text in (RULES, SIX)
)


def assert_translated(state: NodeState) -> None:
    """Assert that only the translation is loaded."""
    assert state.nft == (True, False)
    assert state.answered
    assert [line for line in state.iptables[0] if line.startswith("-A")] == []


@dataclass(frozen=True)
class ReadState(Request):
    """Returns the state, after the record has reached one of ``phases``, or with ``at_rest`` after all timers
    ended.
    """

    variant: Variant
    phases: tuple[Phase, ...] = ()
    at_rest: bool = False

    def run(self, host: Host) -> NodeState:
        place = here(STATE)
        deadline = time.monotonic() + 60
        while self.phases and _phase(place) not in self.phases and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.at_rest:
            wait_for(list(children_of(os.getpid())))
        tables = [split(save(self.variant, family)) for family in Family]
        return NodeState(
            iptables=tuple(tuple(x for name in sorted(t) for x in t[name].table_state) for t in tables),
            counters="\n".join(
                x for x in save(self.variant, Family.IP, counters=True).split("\n") if x[:1] != "#"
            ),
            nft=(owned.is_there(Family.IP), owned.is_there(Family.IP6)),
            phase=_phase(place),
            answered=_is_answered(),
            journal=read_steps(ReservedLog(place.journal)).lines,
            timer_log=place.timer_log.read_text() if place.timer_log.exists() else "",
        )


def _phase(place: MigrationPlace) -> Phase | None:
    """Return the phase on record; None without a readable record."""
    try:
        record = Record.read(place.record)
    except MachineError:
        return None
    return None if record is None else record.phase


def _is_answered() -> bool:
    """Return whether a new connection to the service gets an answer from the service's address.

    A second datagram goes straight to the endpoint. If it arrives alone, the first one was not translated.
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(ENDPOINT)
        server.settimeout(2)
        client.settimeout(2)
        client.connect(SERVICE)
        try:
            client.send(b"?")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as behind:
                behind.sendto(b".", ENDPOINT)
            said, source = server.recvfrom(10)
            if said == b".":
                server.setblocking(False)
                said, source = server.recvfrom(10)
            server.sendto(b"!", source)
            return client.recv(10) == b"!"
        except OSError:
            return False


def read_state(node: Worker, variant: Variant, *phases: Phase, at_rest: bool = False) -> NodeState:
    state: NodeState = node.ask(ReadState(variant, phases, at_rest))
    return state
