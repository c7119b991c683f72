"""A migration that is killed at every point between its steps, and others who change rules meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.kernel.worker import Worker
from backends.kernel.xtables import IptablesBackend
from harness.migrate.record import Phase
from harness.snapshot import Stack
from tests.kernel.migratenode import OLD, MakePlan, Said, Seen, do, look, migrate_node

TABLES = ("raw", "mangle", "nat", "filter")
APPLY = ("load ip", "check ip", *(f"empty ip {t}" for t in TABLES), "look ip", "applied")
ROLLBACK = (*(f"restore ip {t}" for t in reversed(TABLES)), "delete ip", "compare ip", "rolled back")


def points(steps: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{when} {step}" for step in steps for when in ("begun", "made", "done"))


@pytest.fixture(scope="module", params=list(Stack))
def stack(request: pytest.FixtureRequest) -> Stack:
    found = IptablesBackend(f"iptables-{request.param}").probe()
    if not found.ok:
        pytest.skip(found.reason)
    return Stack(request.param)


@pytest.fixture(scope="module")
def node(stack: Stack) -> Iterator[Worker]:
    with migrate_node(stack) as worker:
        yield worker


@pytest.fixture(scope="module")
def plan(node: Worker, stack: Stack) -> str:
    text: str = node.ask(MakePlan(stack))
    return text


@pytest.fixture(autouse=True)
def as_before(node: Worker, stack: Stack) -> Iterator[None]:
    yield
    do(node, "rollback")
    seen = look(node, stack)
    assert (seen.iptables, seen.nft) == (OLD, (False, False))


def insist_new(seen: Seen) -> None:
    assert seen.nft == (True, False)
    assert seen.answered
    assert [line for line in seen.iptables[0] if line.startswith("-A")] == []


def test_there_and_back(node: Worker, stack: Stack, plan: str) -> None:
    before = look(node, stack)
    assert before.is_old
    assert before.answered
    before = look(node, stack)  # with the counters of that
    said = do(node, "apply", plan)
    assert said == Said(killed=False, error=None, points=points(APPLY))
    seen = look(node, stack)
    insist_new(seen)
    assert seen.phase is Phase.APPLIED
    assert do(node, "confirm").error is None
    assert look(node, stack).phase is Phase.CONFIRMED
    said = do(node, "rollback")
    assert said == Said(killed=False, error=None, points=points(ROLLBACK))
    after = look(node, stack)
    assert after.is_old
    assert after.phase is Phase.ROLLED_BACK
    # Another answer has gone by since.
    assert "[3:180] -A PREROUTING -d 10.2.0.9/32 -j DROP" in after.counters
    assert ":INPUT DROP [" in after.counters
    again = do(node, "rollback")
    assert again == Said(killed=False, error=None, points=())


@pytest.mark.parametrize("at", points(APPLY))
def test_apply_is_killed(node: Worker, stack: Stack, plan: str, at: str) -> None:
    """The dead-man timer sees it and rolls back; meanwhile, and after, the service answers."""
    assert do(node, "apply", plan, at=at).killed
    seen = look(node, stack, Phase.ROLLED_BACK)
    assert seen.is_old
    assert seen.answered
    assert "has ended too early" in seen.said


@pytest.mark.parametrize("at", points(APPLY))
def test_apply_and_its_timer_are_killed(node: Worker, stack: Stack, plan: str, at: str) -> None:
    """Nobody is left: what is in force is complete all the same, and the next command rolls it back."""
    assert do(node, "apply", plan, at=at, alone=True).killed
    between = look(node, stack)
    assert between.answered
    applied = between.phase is Phase.APPLIED
    assert applied == (at in ("made applied", "done applied"))
    assert do(node, "settle").error is None
    seen = look(node, stack)
    if applied:
        insist_new(seen)
    else:
        assert seen.phase is Phase.ROLLED_BACK
        assert seen.is_old
    assert seen.answered


@pytest.mark.parametrize("after", [0.05 * n for n in range(1, 13)])
def test_apply_is_killed_at_any_time(node: Worker, stack: Stack, plan: str, after: float) -> None:
    """In the middle of a step, too, and of a tool's work: whoever rolls back waits for the tool's end."""
    killed = do(node, "apply", plan, after=after).killed
    over = (Phase.ROLLED_BACK,) if killed else (Phase.ROLLED_BACK, Phase.APPLIED)
    if look(node, stack).phase is None:
        return  # it had not begun
    seen = look(node, stack, *over)
    assert seen.answered
    if seen.phase is Phase.ROLLED_BACK:
        assert seen.is_old
    else:
        insist_new(seen)


@pytest.mark.parametrize("at", points(ROLLBACK))
def test_rollback_is_killed(node: Worker, stack: Stack, plan: str, at: str) -> None:
    assert do(node, "apply", plan).error is None
    assert do(node, "confirm").error is None
    assert do(node, "rollback", at=at).killed
    between = look(node, stack)
    assert between.answered
    assert do(node, "settle").error is None
    seen = look(node, stack)
    assert seen.phase is Phase.ROLLED_BACK
    assert seen.is_old
    assert seen.answered
