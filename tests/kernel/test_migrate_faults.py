"""Faults at every operation of a migration: kills, a disk that is full or broken, tools that fail.

Each case ends with the rules from before in force, whoever has to bring them back: the command, its dead-man
timer, or a ``rollback`` that meets the same fault. Operations are those of ``faults``; the whole sweep is
slow, and a spread of it runs always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import pytest

from backends.replay.worker import Worker
from nfparity.migrate.state.record import Phase
from nfparity.snapshot import Variant
from tests.kernel.helpers.faults import Fault, Kind
from tests.kernel.helpers.migratenode import MakePlan, do, migrate_node
from tests.kernel.helpers.migratestate import assert_translated, read_state

ACTIONS = ("apply", "confirm", "rollback")
DISK = (Kind.FULL, Kind.BROKEN)


@pytest.fixture(scope="module")
def node(variant: Variant) -> Iterator[Worker]:
    with migrate_node(variant) as worker:
        yield worker


@pytest.fixture(scope="module")
def plan(node: Worker, variant: Variant) -> str:
    text: str = node.ask(MakePlan(variant))
    return text


@pytest.fixture(scope="module")
def operations(node: Worker, plan: str) -> dict[str, tuple[str, ...]]:
    """The operations of each action when nothing happens."""
    found = {}
    for action in ACTIONS:
        result = do(node, action, plan)
        assert result.error is None
        found[action] = result.operations
    return found


def faults(action: str, at: int, operation: str) -> Iterator[Fault]:
    """Yield all that may happen at one operation."""
    yield Fault(Kind.NONE, at, kill=True)
    if action == "apply":
        yield Fault(Kind.NONE, at, kill=True, alone=True)
    if operation.startswith(("nft", "iptables-")):
        yield from (Fault(Kind.IN_TOOL, at), Fault(Kind.TOOL, at, times=1), Fault(Kind.TOOL, at, times=3))
        if action == "apply":
            yield Fault(Kind.TOOL, at, times=4, kill=True)  # the timer tries again
        return
    for kind in DISK:
        yield from (Fault(kind, at, times=1), Fault(kind, at))
        if action == "apply":
            yield Fault(kind, at, kill=True)


def insist(node: Worker, variant: Variant, plan: str, action: str, fault: Fault) -> None:
    """Run an action with a fault, then roll back with it, and then without."""
    if action != "apply":
        assert do(node, "apply", plan).error is None
    if action == "rollback":
        assert do(node, "confirm").error is None
    result = do(node, action, plan, fault=fault)
    state = read_state(node, variant)
    assert state.answered
    failed = result.killed or result.error is not None
    match action:
        case "apply" if failed and not fault.alone:
            assert state.is_old
        case "apply" if not failed:
            assert_translated(state)
        case "confirm":
            assert_translated(state)
        case "rollback" if not failed:
            assert state.is_old
            assert result.done
    lasting = dataclasses.replace(fault, at=0, kill=False) if fault.kind in DISK else None
    again = do(node, "rollback", fault=lasting)
    assert again.error is None
    assert again.done or not any(state.nft)
    assert read_state(node, variant).is_old
    last = do(node, "rollback")
    assert last.error is None
    state = read_state(node, variant)
    assert state.is_old
    assert state.answered
    assert state.phase in (None, Phase.ROLLED_BACK)


Case = tuple[str, str, Fault]


def every_case(operations: dict[str, tuple[str, ...]]) -> Iterator[Case]:
    for action in ACTIONS:
        for at, operation in enumerate(operations[action]):
            for fault in faults(action, at, operation):
                yield action, operation, fault


def run_cases(node: Worker, variant: Variant, plan: str, cases: Iterable[Case]) -> None:
    for action, operation, fault in cases:
        try:
            insist(node, variant, plan, action, fault)
        except AssertionError as e:
            raise AssertionError(f"{action}, {operation}: {fault}: {e}") from e


def test_each_kind_of_fault_somewhere(
    node: Worker, variant: Variant, plan: str, operations: dict[str, tuple[str, ...]]
) -> None:
    """Half of the kinds for each variant, in the middle of what may be hit."""
    kinds: dict[tuple[object, ...], list[Case]] = {}
    for case in every_case(operations):
        action, _, fault = case
        kinds.setdefault((action, dataclasses.replace(fault, at=0)), []).append(case)
    assert len(kinds) > 20
    chosen = [cases[len(cases) * 2 // 3] for cases in kinds.values()]
    run_cases(node, variant, plan, chosen[list(Variant).index(variant) :: 2])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_every_fault_everywhere(
    node: Worker, variant: Variant, plan: str, operations: dict[str, tuple[str, ...]], part: int
) -> None:
    """Some 400 kills and 1,300 failures of disk or tools for each variant."""
    cases = list(every_case(operations))
    assert len(cases) > 1500
    run_cases(node, variant, plan, cases[part::5])
