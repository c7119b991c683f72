"""A confirmed translation is loaded again after a reboot: in a new namespace, with the old state."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.replay.worker import Worker
from nfparity.migrate import Migration, bootunit
from nfparity.migrate.state.place import here
from nfparity.migrate.state.record import Phase
from nfparity.migrate.state.tables import split
from nfparity.migrate.verification import look
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import (
    DISK,
    FOREIGN,
    STATE,
    Forget,
    Fresh,
    MakePlan,
    Shell,
    do,
    migrate_node,
)
from tests.kernel.helpers.migratestate import OLD, assert_translated, read_state
from tests.kernel.helpers.variants import ONE_VARIANT
from tests.lab.traffic.host import Host, Request
from translate.errors import NfparityError
from translate.ir import Family

UNITS = DISK / "units"


@dataclass(frozen=True)
class Boot(Request):
    """Runs an action of a migration that has units in ``UNITS``; returns its result or its error."""

    action: str

    def run(self, host: Host) -> str:
        migration = Migration(dataclasses.replace(here(STATE), units=UNITS))
        try:
            match self.action:
                case "enable":
                    return str(migration.load_at_boot())
                case "load":
                    loaded = migration.load()
                    return f"{loaded.new} {' '.join(table for _, table in loaded.emptied)}".rstrip()
                case "look":
                    return look(migration).state.value
                case _:
                    undone = migration.rollback()
                    return str(undone is not None and undone.forgotten)
        except NfparityError as e:
            return f"error: {e}"


@dataclass(frozen=True)
class Disk(Request):
    """Returns the files on the disk, or writes ``files`` to it."""

    files: tuple[tuple[str, int, bytes], ...] = ()

    def run(self, host: Host) -> tuple[tuple[str, int, bytes], ...]:
        for name, mode, data in self.files:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            path.write_bytes(data)
            path.chmod(mode)
        kept = (path for path in STATE.rglob("*") if path.is_file())
        return tuple((str(path), path.stat().st_mode & 0o777, path.read_bytes()) for path in kept)


@pytest.fixture(scope="module")
def started(variant: Variant) -> Iterator[Worker]:
    with migrate_node(variant, Boot, Disk) as worker:
        yield worker


@pytest.fixture
def node(started: Worker, variant: Variant) -> Worker:
    started.ask(Fresh(variant))
    return started


@pytest.fixture
def rebooted(variant: Variant) -> Iterator[Worker]:
    """Another namespace, in which nothing is loaded yet; the disk comes later (:func:`boot`)."""
    with migrate_node(variant, Boot, Disk) as worker:
        yield worker


def boot(node: Worker, rebooted: Worker, variant: Variant, written: str = "") -> None:
    rebooted.ask(Disk(node.ask(Disk())))
    rebooted.ask(Forget(variant, written))


def confirm(node: Worker, variant: Variant, *families: Family) -> None:
    plan = node.ask(MakePlan(variant, families or (Family.IP,)))
    assert do(node, "apply", plan).error is None
    assert "no plan is confirmed" in node.ask(Boot("enable"))
    assert do(node, "confirm").error is None
    assert node.ask(Boot("enable")) == str(UNITS / bootunit.NAME)


def test_it_is_loaded_again_and_rolled_back(node: Worker, rebooted: Worker, variant: Variant) -> None:
    confirm(node, variant)
    assert node.ask(Boot("load")) == "False"  # loaded already
    boot(node, rebooted, variant)
    before = read_state(rebooted, variant)
    assert before.nft == (False, False)
    assert not before.answered
    assert rebooted.ask(Boot("load")) == "True"
    assert_translated(read_state(rebooted, variant))
    assert rebooted.ask(Boot("look")) == "same"
    assert rebooted.ask(Boot("load")) == "False"
    rebooted.ask(Shell(("mkdir", "-p", str(UNITS))))
    assert rebooted.ask(Boot("rollback")) == "False"  # the kernel had not lost it
    state = read_state(rebooted, variant)
    assert state.iptables[0] == OLD[0]
    assert state.answered
    assert state.phase is Phase.ROLLED_BACK
    assert "the plan is rolled back" in rebooted.ask(Boot("load"))


def test_both_families_at_once(node: Worker, rebooted: Worker, variant: Variant) -> None:
    confirm(node, variant, Family.IP, Family.IP6)
    boot(node, rebooted, variant)
    assert rebooted.ask(Boot("load")) == "True"
    assert read_state(rebooted, variant).nft == (True, True)
    rebooted.ask(Shell(("nft", "delete", "table", "ip6", "nfparity")))
    assert "another nftables table ip nfparity is loaded" in rebooted.ask(Boot("load"))


@ONE_VARIANT
def test_the_unit_is_removed_by_a_rollback(node: Worker, variant: Variant) -> None:
    confirm(node, variant)
    node.ask(Shell(("test", "-L", str(UNITS / "sysinit.target.wants" / bootunit.NAME))))
    assert node.ask(Boot("rollback")) == "False"
    assert node.ask(Shell(("find", str(UNITS), "-name", bootunit.NAME))) == ""


@ONE_VARIANT
def test_a_reboot_before_the_confirmation(node: Worker, rebooted: Worker, variant: Variant) -> None:
    """The timer is gone; nothing is loaded, nothing can be confirmed, and a rollback restores the rules."""
    plan = node.ask(MakePlan(variant))
    assert do(node, "apply", plan).error is None
    boot(node, rebooted, variant)
    assert "the plan is applied, not confirmed; nothing is loaded" in rebooted.ask(Boot("load"))
    assert not any(read_state(rebooted, variant).nft)
    late = do(rebooted, "confirm")
    assert late.error is not None
    assert "the applied rules are gone" in late.error
    assert rebooted.ask(Boot("rollback")) == "True"
    assert read_state(rebooted, variant).iptables[0] == OLD[0]


@ONE_VARIANT
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ip.nft", "is not the translation that was tested"),
        ("plan.json", "it was changed after it was made"),
        ("record.json", "is damaged"),
    ],
)
def test_files_that_were_changed(
    node: Worker, rebooted: Worker, variant: Variant, name: str, reason: str
) -> None:
    confirm(node, variant)
    boot(node, rebooted, variant)
    path, changed = f"{STATE}/{name}", []
    for file in rebooted.ask(Disk()):
        if file[0] != path:
            continue
        data = file[2]
        if name == "plan.json":
            data = json.dumps({**json.loads(data), "seed": 9}).encode()
        else:
            data = data.replace(b"nfparity", b"nfqarity").replace(b"confirmed", b"konfirmed")
        changed.append((path, file[1], data))
    rebooted.ask(Disk(tuple(changed)))
    assert reason in rebooted.ask(Boot("load"))
    assert not any(read_state(rebooted, variant).nft)


@ONE_VARIANT
@pytest.mark.parametrize("name", ["ip.nft", "plan.json", "record.json"])
def test_files_that_are_gone(node: Worker, rebooted: Worker, variant: Variant, name: str) -> None:
    confirm(node, variant)
    boot(node, rebooted, variant)
    rebooted.ask(Shell(("rm", f"{STATE}/{name}")))
    assert f"{name} does not exist" in rebooted.ask(Boot("load"))
    assert not any(read_state(rebooted, variant).nft)


@ONE_VARIANT
def test_a_file_that_others_can_write_to(node: Worker, rebooted: Worker, variant: Variant) -> None:
    confirm(node, variant)
    boot(node, rebooted, variant)
    rebooted.ask(Shell(("chmod", "666", f"{STATE}/ip.nft")))
    assert "cannot be trusted" in rebooted.ask(Boot("load"))
    assert not any(read_state(rebooted, variant).nft)


def test_another_program_was_first(node: Worker, rebooted: Worker, variant: Variant) -> None:
    confirm(node, variant)
    boot(node, rebooted, variant)
    rebooted.ask(Shell((f"iptables-{variant}", *FOREIGN)))
    said = rebooted.ask(Boot("load"))
    assert "iptables has ip rules in table nat that are not those from before the migration: new is" in said
    assert " ".join(FOREIGN[2:]) in said
    assert not any(read_state(rebooted, variant).nft)


@pytest.mark.parametrize("tables", [("raw", "mangle", "nat", "filter"), ("nat",)])
def test_another_program_has_loaded_the_old_rules(
    node: Worker, rebooted: Worker, variant: Variant, tables: tuple[str, ...]
) -> None:
    """As netfilter-persistent does, from files that were saved before the migration."""
    saved = split(node.ask(Shell((f"iptables-{variant}-save",))))
    confirm(node, variant)
    boot(node, rebooted, variant, "".join(saved[table].text for table in tables))
    assert rebooted.ask(Boot("load")) == f"True {' '.join(tables)}"
    assert_translated(read_state(rebooted, variant))
    assert rebooted.ask(Boot("look")) == "same"
    assert rebooted.ask(Boot("load")) == "False"
    assert rebooted.ask(Boot("rollback")) == "False"
    state = read_state(rebooted, variant)
    assert state.iptables[0] == OLD[0]
    assert state.answered


def test_another_program_has_loaded_some_of_the_old_rules(
    node: Worker, rebooted: Worker, variant: Variant
) -> None:
    """A table with fewer rules is another table, and nothing is changed."""
    saved = split(node.ask(Shell((f"iptables-{variant}-save",))))
    confirm(node, variant)
    lines = [line for line in saved["filter"].lines if "--dport 5302" not in line]
    boot(node, rebooted, variant, saved["nat"].text + "".join(f"{line}\n" for line in lines))
    before = read_state(rebooted, variant)
    said = rebooted.ask(Boot("load"))
    assert "in table filter that are not those from before the migration: gone is" in said
    assert "--dport 5302" in said
    after = read_state(rebooted, variant)
    assert after.iptables == before.iptables
    assert not any(after.nft)
