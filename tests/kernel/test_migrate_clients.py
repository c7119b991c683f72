"""Clients in lists of ``-m recent`` are carried over by a migration, and back by a rollback."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

import pytest

from backends.replay.worker import Worker
from nfparity.migrate import Migration, MigrationPlan, steps
from nfparity.migrate import migration as migrating
from nfparity.migrate.clients import ClientsForth
from nfparity.migrate.elements import read_contents
from nfparity.migrate.recentfiles import Jiffies, capacity, read_list
from nfparity.migrate.state import owned
from nfparity.migrate.state.place import here
from nfparity.migrate.state.record import Phase
from nfparity.migrate.state.tables import restore_table
from nfparity.snapshot import Variant
from tests.kernel.helpers.affinity import (
    BAN_PORT,
    ENDPOINTS,
    HITS_PORT,
    SERVICES,
    Knocks,
    Lists,
    Services,
    Visits,
    client,
)
from tests.kernel.helpers.faults import Fault, Kind
from tests.kernel.helpers.migratenode import STATE, MakePlan, Shell, do, migrate_node
from tests.kernel.helpers.migratestate import read_state
from tests.kernel.helpers.variants import ONE_VARIANT
from tests.lab.traffic.host import Host, Join, Request
from translate.ir import Family

CLIENTS = [1000, pytest.param(10_000, marks=pytest.mark.slow)]
"""The number of clients, over all services."""


@dataclass(frozen=True)
class Pid(Request):
    """Returns the process id of the node."""

    def run(self, host: Host) -> int:
        return os.getpid()


@dataclass(frozen=True)
class RollBack(Request):
    """Rolls back in this process; returns what the command would print about it."""

    def run(self, host: Host) -> tuple[str, ...]:
        undone = Migration(here(STATE)).rollback()
        assert undone is not None
        return undone.reservations()


@dataclass(frozen=True)
class InSlowMotion(Request):
    """Applies a plan and rolls back, with new clients in between; returns those that change endpoints."""

    plan: str

    def run(self, host: Host) -> list[str]:
        changed: list[str] = []
        known: dict[int, str | None] = {}

        def come(moment: str) -> None:
            for number in range(len(known), len(known) + 40):
                (known[number],) = Visits(Family.IP, range(number, number + 1)).run(host)
            stay(moment)

        def stay(moment: str) -> None:
            now = Visits(Family.IP, range(len(known))).run(host)
            changed.extend(f"{moment}: {n}" for n, where in enumerate(now) if where != known[n])

        class Slow(ClientsForth):
            def elements(self) -> str:
                text = super().elements()
                come("between reading and loading")
                return text

        def restored(*arguments: Any, **more: Any) -> None:
            restore_table(*arguments, **more)
            come("between restoring and removing")

        migration = Migration(here(STATE))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migrating, "ClientsForth", Slow)
            patch.setattr(steps, "restore_table", restored)
            come("before")
            migration.apply(MigrationPlan.from_text(self.plan, name="plan"), 100.0)
            stay("after apply")
            migration.confirm()
            assert migration.rollback() is not None
            stay("after rollback")
        return changed


@dataclass(frozen=True)
class TimesLeft(Request):
    """Waits until the addresses of a list are ``age`` seconds old, and returns the youngest age."""

    name: str
    age: float

    def run(self, host: Host) -> float:
        while True:
            clock = Jiffies.read()
            ages = [clock.age(s) for client in read_list(self.name, Family.IP) for s in client.stamps]
            if min(ages) >= self.age:
                return min(ages)
            time.sleep(0.01)


@dataclass(frozen=True)
class Elements(Request):
    """Returns the seconds left of each address in the sets whose name begins with ``prefix``."""

    prefix: str

    def run(self, host: Host) -> dict[str, int | None]:
        listing = owned.list_table(Family.IP)
        assert listing is not None
        found: dict[str, int | None] = {}
        for name, keyed in read_contents(listing).items():
            if name.startswith(self.prefix):
                for addresses in keyed.values():
                    found.update(addresses)
        return found


@pytest.fixture(scope="module")
def node(variant: Variant) -> Iterator[Worker]:
    requests = (Services, Visits, Knocks, Lists, RollBack, TimesLeft, Elements, Pid, InSlowMotion)
    with migrate_node(variant, *requests) as worker:
        yield worker


def visits(node: Worker, clients: range, family: Family = Family.IP) -> tuple[str | None, ...]:
    made: tuple[str | None, ...] = node.ask(Visits(family, clients))
    assert None not in made
    return made


class Stream:
    """The clients' further connections, from another process, until it is stopped."""

    def __init__(
        self, node: Worker, family: Family, clients: range, endpoints: tuple[str | None, ...]
    ) -> None:
        self._pid = node.ask(Pid())
        self._arguments = family, clients, endpoints
        self._stop = Event()
        self.connections = self.failed = self.changed = 0
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        family, clients, endpoints = self._arguments
        with Worker(Join("clients", self._pid)) as worker:
            while not self._stop.is_set():
                now = worker.ask(Visits(family, clients))
                self.connections += len(now)
                self.failed += now.count(None)
                self.changed += sum(a != b for a, b in zip(now, endpoints, strict=True) if a is not None)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("count", CLIENTS)
@pytest.mark.parametrize(
    ("variant", "family"),
    [
        (Variant.LEGACY, Family.IP),
        (Variant.NFT, Family.IP6),
        pytest.param(Variant.LEGACY, Family.IP6, marks=pytest.mark.slow),
        pytest.param(Variant.NFT, Family.IP, marks=pytest.mark.slow),
    ],
    indirect=["variant"],
)
def test_clients_keep_their_endpoints(node: Worker, variant: Variant, family: Family, count: int) -> None:
    clients = range(count)
    node.ask(Services(variant, (family,), ENDPOINTS))
    before = visits(node, clients, family)
    assert len(set(before)) == ENDPOINTS
    plan = node.ask(MakePlan(variant, (family,)))
    with Stream(node, family, clients, before) as stream:
        assert do(node, "apply", plan).error is None
    carried = stream.connections, stream.failed, stream.changed
    assert sum(map(len, node.ask(Lists()).values())) == 0
    assert visits(node, clients, family) == before
    with Stream(node, family, clients, before) as stream:
        assert do(node, "rollback").done
    back = stream.connections, stream.failed, stream.changed
    assert len(node.ask(Lists())) >= SERVICES * ENDPOINTS
    assert visits(node, clients, family) == before
    for words, (connections, failed, changed) in (("apply", carried), ("rollback", back)):
        print(f"{variant} {family}: {words}: {connections} connections, {failed} failed, {changed} changed")
        assert connections
        assert (failed, changed) == (0, 0)


@ONE_VARIANT
def test_the_timer_carries_them_back(node: Worker, variant: Variant) -> None:
    node.ask(Services(variant, (Family.IP,)))
    before = visits(node, range(150))
    assert do(node, "apply", node.ask(MakePlan(variant)), within=2.0).error is None
    assert read_state(node, variant, Phase.ROLLED_BACK).phase is Phase.ROLLED_BACK
    assert visits(node, range(150)) == before


@ONE_VARIANT
@pytest.mark.parametrize("damage", ["record.json", "plan.json", "ip.iptables-save"])
def test_a_rollback_with_damaged_files_carries_them_back(node: Worker, variant: Variant, damage: str) -> None:
    node.ask(Services(variant, (Family.IP,)))
    before = visits(node, range(150))
    assert do(node, "apply", node.ask(MakePlan(variant))).error is None
    assert do(node, "confirm").error is None
    node.ask(Shell(("truncate", "-s", "100", f"{STATE}/{damage}")))
    assert do(node, "rollback").done
    assert visits(node, range(150)) == before


def test_new_clients_during_the_change(node: Worker, variant: Variant) -> None:
    """Those that come after the lists were read, or filled, are carried over, too."""
    node.ask(Services(variant, (Family.IP,)))
    result = node.ask(InSlowMotion(node.ask(MakePlan(variant))))
    assert result == []


@ONE_VARIANT
@pytest.mark.parametrize("action", ["apply", "rollback"])
def test_a_kill_before_any_change(node: Worker, variant: Variant, action: str) -> None:
    """Also between the two steps in which a table with lists is restored."""
    clients = range(40)

    def begin(plan: str) -> tuple[str | None, ...]:
        node.ask(Services(variant, (Family.IP,)))
        endpoints = visits(node, clients)
        if action == "rollback":
            assert do(node, "apply", plan).error is None
            assert do(node, "confirm").error is None
        return endpoints

    node.ask(Services(variant, (Family.IP,)))
    plan = node.ask(MakePlan(variant))
    begin(plan)
    operations = do(node, action, plan).operations
    changes = [n for n, name in enumerate(operations) if name.endswith(("-restore", "transaction"))]
    assert len(changes) >= 3
    for at in changes:
        before = begin(plan)
        assert do(node, action, plan, fault=Fault(Kind.NONE, at, kill=True)).killed
        do(node, "rollback")
        assert node.ask(Shell(("nft", "list", "tables"))).count("nfparity") == 0
        assert visits(node, clients) == before, f"{action}, {operations[at]}, {at}"


def test_counted_packets(node: Worker, variant: Variant) -> None:
    """A check with --hitcount 3: the third packet is accepted, the fourth is not, whoever counts them."""
    node.ask(Services(variant, (Family.IP,)))

    def knocks(*clients: int) -> tuple[bool, ...]:
        arrived: tuple[bool, ...] = node.ask(Knocks(Family.IP, HITS_PORT, clients))
        return arrived

    assert knocks(1, 1, 2, 2, 3, 3, 3, 4) == (True,) * 8
    assert do(node, "apply", node.ask(MakePlan(variant))).error is None
    assert knocks(3) == (False,)
    assert knocks(1, 1) == (True, False)
    assert knocks(4) == (True,)
    assert do(node, "rollback").done
    assert knocks(3, 1) == (False, False)
    assert knocks(2, 2) == (True, False)
    assert knocks(4, 4) == (True, False)


@ONE_VARIANT
def test_times_are_carried_over(node: Worker, variant: Variant) -> None:
    node.ask(Services(variant, (Family.IP,)))
    assert node.ask(Knocks(Family.IP, BAN_PORT, (7,))) == (False,)
    plan = node.ask(MakePlan(variant))
    age = node.ask(TimesLeft("BAN-ip", 2.0))
    assert do(node, "apply", plan).error is None
    left = node.ask(Elements("recent_BAN"))[client(Family.IP, 7)]
    assert left is not None
    assert 2900 < left <= 3000 - age


def test_more_clients_than_a_list_holds(node: Worker, variant: Variant) -> None:
    """The set has those that the list had; the list gets the youngest back, and the rest is reported."""
    node.ask(Services(variant, (Family.IP,)))
    room = node.ask(Capacity())
    node.ask(Knocks(Family.IP, BAN_PORT, tuple(range(room + 50))))
    youngest = {client(Family.IP, n) for n in range(50, room + 50)}
    assert set(node.ask(Lists())["BAN-ip"]) == youngest
    assert do(node, "apply", node.ask(MakePlan(variant))).error is None
    assert set(node.ask(Elements("recent_BAN"))) == youngest
    node.ask(Knocks(Family.IP, BAN_PORT, tuple(range(room + 50, room + 80))))
    assert do(node, "confirm").error is None
    said = node.ask(RollBack())
    assert [line for line in said if "the 30 oldest of them" in line]
    assert len(node.ask(Lists())["BAN-ip"]) == room
    assert client(Family.IP, room + 79) in node.ask(Lists())["BAN-ip"]


@dataclass(frozen=True)
class Capacity(Request):
    """Returns how many addresses a list holds."""

    def run(self, host: Host) -> int:
        return capacity()


def test_a_list_that_cannot_be_replaced(node: Worker, variant: Variant) -> None:
    """Its table is kept, and so is the list; those of the other table are carried over."""
    node.ask(Services(variant, (Family.IP,)))
    check = ("-m", "recent", "--rcheck", "--seconds", "60", "--rttl", "--name", "BAN-ip", "-j", "DROP")
    node.ask(Shell((f"iptables-{variant}", "-A", "INPUT", "-p", "50", *check)))
    node.ask(Knocks(Family.IP, BAN_PORT, (7, 8)))
    before = visits(node, range(100, 200))
    plan = node.ask(MakePlan(variant, left=("filter",)))
    assert do(node, "apply", plan).error is None
    assert node.ask(Lists())["BAN-ip"] == (client(Family.IP, 7), client(Family.IP, 8))
    assert visits(node, range(100, 200)) == before
    assert do(node, "rollback").done
    assert node.ask(Lists())["BAN-ip"] == (client(Family.IP, 7), client(Family.IP, 8))
    assert visits(node, range(100, 200)) == before
