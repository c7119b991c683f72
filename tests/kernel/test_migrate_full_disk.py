"""A migration whose state is on a disk that is too small, or runs full at some point.

Whatever the point, either nothing was changed, or all that follows works without more space: the migration
itself, its confirmation, the dead-man timer, and ``rollback``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.replay.worker import Worker
from nfparity.migrate.state.record import Phase
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import (
    APPLY,
    ROLLBACK,
    STATE,
    Fresh,
    MakePlan,
    Shell,
    Space,
    do,
    migrate_node,
    points,
)
from tests.kernel.helpers.migratestate import assert_translated, read_state
from tests.kernel.helpers.variants import ONE_VARIANT

SIZES = (28, 80)
"""KiB; the smaller one has no space for what is needed to go back."""
SOME = 9
"""One point in so many is tried always, the others are slow."""


@pytest.fixture(scope="module")
def started(variant: Variant) -> Iterator[Worker]:
    with migrate_node(variant) as worker:
        yield worker


@pytest.fixture(scope="module")
def plan(started: Worker, variant: Variant) -> str:
    text: str = started.ask(MakePlan(variant))
    return text


@pytest.fixture
def node(started: Worker, variant: Variant) -> Worker:
    started.ask(Fresh(variant, SIZES[-1]))
    return started


def some(steps: tuple[str, ...]) -> list[object]:
    every = points(steps)
    return [pytest.param(p, marks=[pytest.mark.slow] if n % SOME else []) for n, p in enumerate(every)]


def insist_rolled_back(node: Worker, variant: Variant) -> None:
    """It is on record, too, in the space that was taken for that."""
    state = read_state(node, variant)
    assert state.is_old
    assert state.answered
    assert state.phase is Phase.ROLLED_BACK


@pytest.mark.parametrize("size", [4, SIZES[0]])
def test_a_disk_that_is_too_small(started: Worker, variant: Variant, plan: str, size: int) -> None:
    started.ask(Fresh(variant, size))
    result = do(started, "apply", plan)
    assert result.error is not None
    assert "No space left on device; nothing is changed" in result.error
    assert result.points == ()
    assert read_state(started, variant).is_old
    assert do(started, "rollback").done is False


@pytest.mark.slow
def test_every_size(started: Worker, variant: Variant, plan: str) -> None:
    """Nothing is changed, or everything works."""
    worked = []
    for size in range(4, SIZES[-1] + 4, 4):
        started.ask(Fresh(variant, size))
        if do(started, "apply", plan).error is None:
            worked.append(size)
            started.ask(Space(full=True))
            assert_translated(read_state(started, variant))
        assert do(started, "rollback").done is bool(worked)
        assert read_state(started, variant).is_old
    assert worked
    assert worked == list(range(worked[0], SIZES[-1] + 4, 4))


def test_a_disk_that_is_full_already(node: Worker, variant: Variant, plan: str) -> None:
    node.ask(Space(full=True))
    result = do(node, "apply", plan)
    assert result.error is not None
    assert "nothing is changed" in result.error
    assert read_state(node, variant).is_old
    assert do(node, "rollback").done is False
    node.ask(Space(full=False))
    assert do(node, "apply", plan).error is None
    assert_translated(read_state(node, variant))


@pytest.mark.parametrize("point", some(APPLY))
def test_it_runs_full_during_apply(node: Worker, variant: Variant, plan: str, point: str) -> None:
    """All goes on: the space was taken before."""
    assert do(node, "apply", plan, fills=point).error is None
    state = read_state(node, variant)
    assert_translated(state)
    assert state.phase is Phase.APPLIED
    assert do(node, "confirm").error is None
    assert read_state(node, variant).phase is Phase.CONFIRMED
    assert do(node, "rollback").done
    insist_rolled_back(node, variant)
    again = do(node, "apply", plan)  # what it needs is there
    assert again.error is None
    assert_translated(read_state(node, variant))


@pytest.mark.parametrize("point", some(APPLY))
def test_it_runs_full_and_apply_is_killed(node: Worker, variant: Variant, plan: str, point: str) -> None:
    """The timer rolls back; where it is killed as well, ``rollback`` does."""
    assert do(node, "apply", plan, fills=point, at=point).killed
    insist_rolled_back(node, variant)
    assert do(node, "rollback").done is False
    node.ask(Fresh(variant, SIZES[-1]))
    assert do(node, "apply", plan, fills=point, at=point, alone=True).killed
    assert read_state(node, variant).answered
    assert do(node, "rollback").done
    insist_rolled_back(node, variant)


@pytest.mark.parametrize("point", some(ROLLBACK))
def test_it_runs_full_during_rollback(node: Worker, variant: Variant, plan: str, point: str) -> None:
    assert do(node, "apply", plan).error is None
    assert do(node, "confirm").error is None
    assert do(node, "rollback", fills=point, at=point).killed
    assert read_state(node, variant).answered
    assert do(node, "rollback").error is None
    insist_rolled_back(node, variant)


@ONE_VARIANT
def test_nobody_confirms_on_a_full_disk(node: Worker, variant: Variant, plan: str) -> None:
    assert do(node, "apply", plan, within=1.5, fills="done applied").error is None
    state = read_state(node, variant, Phase.ROLLED_BACK)
    assert state.is_old
    assert "it was not confirmed in time: rolling back" in state.timer_log
    assert "rolled back" in state.timer_log.split("\n", 1)[1]


def test_what_others_have_written_and_no_file_can_hold_is_told(
    node: Worker, variant: Variant, plan: str
) -> None:
    result = do(node, "apply", plan, meddle=("done empty ip nat", variant), fills="done empty ip nat")
    assert result.error is not None
    assert "everything is restored as it was before" in result.error
    assert "-A PREROUTING -d 10.9.9.9/32 -j ACCEPT" in result.error
    insist_rolled_back(node, variant)
    assert node.ask(Shell(("find", str(STATE), "-name", "*.found"))) == ""
