"""A migration that is not confirmed, is met by others' changes, or is begun before a reboot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from backends.replay.worker import Worker
from backends.testbed.command import find_tool
from nfparity.migrate.state.record import Phase
from nfparity.migrate.state.tables import split
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import (
    APPLY,
    FOREIGN,
    ROLLBACK,
    RULES,
    STATE,
    Forget,
    Fresh,
    Live,
    MakePlan,
    Shell,
    do,
    migrate_node,
    points,
)
from tests.kernel.helpers.migratestate import OLD, assert_translated, read_state
from tests.kernel.helpers.variants import ONE_VARIANT
from translate.ir import Family

_RULE = " ".join(FOREIGN[2:])


@pytest.fixture(scope="module")
def started(variant: Variant) -> Iterator[Worker]:
    with migrate_node(variant) as worker:
        yield worker


@pytest.fixture
def node(started: Worker, variant: Variant) -> Worker:
    started.ask(Fresh(variant))
    return started


@pytest.fixture(scope="module")
def plan(started: Worker, variant: Variant) -> str:
    started.ask(Fresh(variant))
    text: str = started.ask(MakePlan(variant))
    return text


def test_there_and_back(node: Worker, variant: Variant, plan: str) -> None:
    before = read_state(node, variant)
    assert before.is_old
    assert before.answered
    before = read_state(node, variant)  # with the counters of that
    result = do(node, "apply", plan)
    assert (result.error, result.points) == (None, points(APPLY))
    state = read_state(node, variant)
    assert_translated(state)
    assert state.phase is Phase.APPLIED
    assert do(node, "confirm").error is None
    assert read_state(node, variant).phase is Phase.CONFIRMED
    result = do(node, "rollback")
    assert (result.error, result.points, result.done) == (None, points(ROLLBACK), True)
    after = read_state(node, variant)
    assert after.is_old
    assert after.phase is Phase.ROLLED_BACK
    # Another answer has gone by since.
    assert "[3:180] -A PREROUTING -d 10.2.0.9/32 -j DROP" in after.counters
    assert ":INPUT DROP [" in after.counters
    again = do(node, "rollback")
    assert (again.error, again.points, again.done) == (None, (), False)


def test_nobody_confirms(node: Worker, variant: Variant, plan: str) -> None:
    assert do(node, "apply", plan, within=3.0).error is None
    assert read_state(node, variant).nft == (True, False)
    state = read_state(node, variant, Phase.ROLLED_BACK)
    assert state.is_old
    assert state.answered
    assert "it was not confirmed in time" in state.timer_log
    late = do(node, "confirm")
    assert late.error is not None
    assert "no plan is applied" in late.error


@ONE_VARIANT
def test_the_timer_is_killed_and_time_runs_out(node: Worker, variant: Variant, plan: str) -> None:
    """The next command does what the timer would have done."""
    assert do(node, "apply", plan, within=2.0, at="done applied", alone=True).killed
    assert read_state(node, variant).phase is Phase.APPLIED
    while do(node, "settle").error is None and read_state(node, variant).phase is Phase.APPLIED:
        pass
    assert read_state(node, variant).is_old


@ONE_VARIANT
def test_the_command_hangs(node: Worker, variant: Variant, plan: str) -> None:
    """The timer kills it when the time is up."""
    assert do(node, "apply", plan, within=3.0, at="done empty ip nat", hang=True).killed
    state = read_state(node, variant, Phase.ROLLED_BACK)
    assert state.is_old
    assert "did not finish in time" in state.timer_log


def test_others_wait_while_tables_are_emptied(node: Worker, variant: Variant, plan: str) -> None:
    """iptables-legacy takes a lock, which is held; iptables-nft has none, and is noticed."""
    result = do(node, "apply", plan, meddle=("begun empty ip nat", variant), lock=True)
    if variant is Variant.NFT:
        assert "status 0" in result.points
        assert result.error is not None
        return
    assert "status 4" in result.points  # RESOURCE_PROBLEM: another holds the lock
    assert result.error is None
    assert read_state(node, variant).nft == (True, False)


def test_both_families(node: Worker, variant: Variant) -> None:
    plan = node.ask(MakePlan(variant, (Family.IP, Family.IP6)))
    assert do(node, "apply", plan).error is None
    state = read_state(node, variant)
    assert state.nft == (True, True)
    assert state.answered
    assert not any(line.startswith("-A") for family in state.iptables for line in family)
    assert do(node, "rollback").error is None
    assert read_state(node, variant).is_old


def test_tables_that_stay_are_not_touched(node: Worker, variant: Variant) -> None:
    """Not when the plan is applied, not by what others do to them meanwhile, and not on the way back."""
    plan = node.ask(MakePlan(variant, left=("filter", "raw")))
    before = read_state(node, variant)
    assert do(node, "apply", plan, at="done look ip").killed  # and rolled back
    assert read_state(node, variant, Phase.ROLLED_BACK).is_old
    result = do(node, "apply", plan)
    assert result.error is None
    assert not [point for point in result.points if "filter" in point or "raw" in point]
    state = read_state(node, variant)
    assert state.answered
    assert state.nft == (True, False)
    staying = [line for line in state.iptables[0] if line.startswith("-A")]
    assert staying == [
        line for name in ("filter", "raw") for line in split(RULES)[name].table_state if line.startswith("-A")
    ]
    assert node.ask(Live()) == "same"
    node.ask(Shell((f"iptables-{variant}", "-A", "FORWARD", "-j", "DROP")))
    assert node.ask(Live()) == "same"
    node.ask(Shell((f"iptables-{variant}", *FOREIGN)))
    assert node.ask(Live()) == "drift"
    assert do(node, "rollback").error is None
    after = read_state(node, variant)
    assert set(after.iptables[0]) == {*before.iptables[0], "-A FORWARD -j DROP"}
    assert after.nft == (False, False)
    assert after.answered


def test_the_rules_changed_since_the_plan(node: Worker, variant: Variant, plan: str) -> None:
    node.ask(Shell((f"iptables-{variant}", *FOREIGN)))
    result = do(node, "apply", plan)
    assert result.error is not None
    assert "have changed since the plan" in result.error
    assert _RULE in result.error
    assert result.points == ()
    state = read_state(node, variant)
    assert state.phase is None
    assert state.nft == (False, False)


def test_ipsets_that_change_or_go(node: Worker, variant: Variant) -> None:
    """The translation has a copy of what they held, and so has the plan."""
    if find_tool("ipset") is None:
        pytest.skip("ipset is not installed")
    asks = ("-I", "INPUT", "-m", "set", "--match-set", "allowed", "src", "-j", "ACCEPT")
    node.ask(Shell(("ipset", "create", "allowed", "hash:ip")))
    try:
        for address in ("10.2.0.7", "10.2.0.8"):
            node.ask(Shell(("ipset", "add", "allowed", address)))
        node.ask(Shell((f"iptables-{variant}", *asks)))
        plan = node.ask(MakePlan(variant))
        node.ask(Shell(("ipset", "add", "allowed", "10.2.0.9")))
        result = do(node, "apply", plan)
        assert result.error is not None
        assert "the ipset allowed has changed since the plan" in result.error
        assert read_state(node, variant).nft == (False, False)
        for word, address in (("del", "10.2.0.7"), ("del", "10.2.0.9"), ("add", "10.2.0.7")):
            node.ask(Shell(("ipset", word, "allowed", address)))
        assert do(node, "apply", plan).error is None
        assert_translated(read_state(node, variant))
        # Nothing asks it now; the old rules do, and iptables does not take them without.
        before = node.ask(Shell(("sh", "-c", "ipset save allowed | sort")))
        node.ask(Shell(("ipset", "destroy", "allowed")))
        result = do(node, "rollback")
        assert (result.error, result.done) == (None, True)
        assert "-A INPUT -m set --match-set allowed src -j ACCEPT" in read_state(node, variant).iptables[0]
        after = node.ask(Shell(("sh", "-c", "ipset save allowed | sort")))
        assert [line for line in after.split("\n") if line.startswith("add")] == [
            line for line in before.split("\n") if line.startswith("add")
        ]
    finally:
        node.ask(Fresh(variant))
        node.ask(Shell(("ipset", "destroy", "allowed")))


def test_a_plan_that_was_made_up_loads_nothing(node: Worker, variant: Variant, plan: str) -> None:
    """Its digest is right, its rules are those in force; the rest is somebody's."""
    theirs = 'include "/etc/hostname"\nadd table inet theirs\n'
    data = json.loads(plan)
    data["families"][0]["load"] = theirs
    assert do(node, "apply", resealed(data)).error is None
    assert node.ask(Shell(("nft", "list", "tables"))).count("theirs") == 0
    assert do(node, "rollback").done
    data["families"][0]["translation"] = hashlib.sha256(theirs.encode()).hexdigest()
    result = do(node, "apply", resealed(data))
    assert result.error is not None
    assert "is not the one that was tested" in result.error
    assert result.points == ()
    assert read_state(node, variant).is_old
    changed = do(node, "apply", json.dumps({**json.loads(plan), "seed": 7}))
    assert changed.error is not None
    assert "it was changed after it was made" in changed.error


def resealed(data: dict[str, object]) -> str:
    rest = {key: value for key, value in data.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return json.dumps({**rest, "digest": digest})


@pytest.mark.parametrize("moment", ["begun load ip", "done check ip", "begun empty ip nat"])
def test_somebody_changes_a_table_before_it_is_emptied(
    node: Worker, variant: Variant, plan: str, moment: str
) -> None:
    """All goes back, but for what the other has written: that was never touched."""
    result = do(node, "apply", plan, meddle=(moment, variant))
    assert result.error is not None
    assert "has been changed in the meantime" in result.error
    assert "everything is restored as it was before" in result.error
    state = read_state(node, variant)
    assert state.phase is Phase.ROLLED_BACK
    assert state.nft == (False, False)
    assert state.iptables[0] == _with_foreign()
    assert state.answered


def test_somebody_writes_into_an_emptied_table(node: Worker, variant: Variant, plan: str) -> None:
    """The old rules come back; what the other has written is kept in a file."""
    result = do(node, "apply", plan, meddle=("done empty ip nat", variant))
    assert result.error is not None
    assert "another program has written ip rules into table nat" in result.error
    state = read_state(node, variant)
    assert state.is_old
    assert _RULE in node.ask(Shell(("cat", f"{STATE}/ip-nat.found")))


def test_a_plan_is_applied_once(node: Worker, variant: Variant, plan: str) -> None:
    assert do(node, "apply", plan).error is None
    again = do(node, "apply", plan)
    assert again.error is not None
    assert "already applied here" in again.error
    assert read_state(node, variant).nft == (True, False)


def test_a_foreign_table_of_our_name(node: Worker, variant: Variant, plan: str) -> None:
    node.ask(Shell(("nft", "add", "table", "ip", "nfparity")))
    result = do(node, "apply", plan)
    assert result.error is not None
    assert "an nftables table" in result.error
    assert read_state(node, variant).iptables == OLD


@pytest.mark.parametrize("phase", ["applied", "confirmed", "cut short"])
def test_a_reboot(node: Worker, variant: Variant, plan: str, phase: str) -> None:
    """The kernel has forgotten both; the tables are empty, and get their old rules."""
    at = "done empty ip mangle" if phase == "cut short" else None
    do(node, "apply", plan, at=at, alone=at is not None)
    if phase == "confirmed":
        do(node, "confirm")
    node.ask(Forget(variant))
    assert do(node, "rollback").error is None
    state = read_state(node, variant)
    assert state.phase is Phase.ROLLED_BACK
    assert state.iptables[0] == OLD[0]
    assert state.answered


def test_a_reboot_after_which_others_have_written_rules(node: Worker, variant: Variant, plan: str) -> None:
    """They stay; what is empty gets its old rules."""
    do(node, "apply", plan)
    do(node, "confirm")
    written = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p 47 -j DROP\nCOMMIT\n"
    node.ask(Forget(variant, written))
    assert do(node, "rollback").error is None
    state = read_state(node, variant)
    assert "-A OUTPUT -p gre -j DROP" in state.iptables[0] or "-A OUTPUT -p 47 -j DROP" in state.iptables[0]
    assert not any("10.2.0.9" in line for line in state.iptables[0])
    assert any("KUBE-SERVICES" in line for line in state.iptables[0])
    assert state.answered


def _with_foreign() -> tuple[str, ...]:
    at = OLD[0].index("-A PREROUTING -j KUBE-SERVICES")
    return (*OLD[0][: at + 1], _RULE, *OLD[0][at + 1 :])
