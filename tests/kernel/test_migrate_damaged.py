"""A migration whose files on disk are damaged, gone, or writable by others.

``rollback`` restores the rules from the files that are left, or gives the reason why it cannot, with commands
that do. While the table of nfparity is loaded, it never reports that nothing was applied.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

from backends.replay.worker import Worker
from nfparity.snapshot import Variant
from tests.kernel.helpers.harmednode import node, plan, started, variant
from tests.kernel.helpers.migratedamage import (
    DOUBT,
    FILES,
    HARM,
    JOURNAL,
    MOMENTS,
    PLAN,
    RECORD,
    SAVED,
    Folder,
    bring_to,
    damaged,
    insist_old,
    insist_on_commands,
    insist_restored,
)
from tests.kernel.helpers.migratenode import (
    Fresh,
    MakePlan,
    Shell,
    do,
)
from tests.kernel.helpers.migratestate import read_state

__all__ = ["node", "plan", "started", "variant"]
"""The fixtures."""


ONE_FILE = tuple(itertools.product(MOMENTS, HARM, FILES))


def insist_that_one_file_does_not_matter(
    node: Worker, variant: Variant, plan: str, cases: Iterable[tuple[str, str, Path]]
) -> None:
    for moment, kind, path in cases:
        damaged(node, variant, plan, moment, kind, path)
        try:
            insist_restored(node, variant)
        except AssertionError as e:
            raise AssertionError(f"{moment}: {path.name} is {kind}: {e}") from e


def test_one_file_is_damaged(node: Worker, variant: Variant, plan: str) -> None:
    """The others are enough."""
    insist_that_one_file_does_not_matter(node, variant, plan, ONE_FILE[::17])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_any_file_is_damaged_in_any_way(node: Worker, variant: Variant, plan: str, part: int) -> None:
    insist_that_one_file_does_not_matter(node, variant, plan, ONE_FILE[part::4])


@pytest.mark.parametrize("moment", MOMENTS)
def test_of_each_pair_one_has_the_rules(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    pairs = ((RECORD, PLAN), (RECORD, SAVED), (RECORD, JOURNAL), (PLAN, JOURNAL), (SAVED, JOURNAL))
    kinds = itertools.cycle(("empty", "gone", "garbled", "cut", "zeros", "with other digits"))
    pair = MOMENTS.index(moment)
    for two, kind in zip(pairs[pair:] + pairs[:pair], kinds, strict=False):
        damaged(node, variant, plan, moment, kind, *two)
        insist_restored(node, variant)


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_rules_are_damaged_everywhere(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    """The mark of the table and the record tell whose they were; what they were only a copy can."""
    for kind in ("empty", "with other digits") if moment in ("confirmed", "after a reboot") else ("gone",):
        damaged(node, variant, plan, moment, kind, SAVED, PLAN)
        insist_on_commands(node, variant)


def test_other_rules_are_not_restored(node: Worker, variant: Variant, plan: str) -> None:
    """Whole files, which are about something else than what was replaced."""
    node.ask(Shell((f"iptables-{variant}", "-t", "nat", "-F", "KUBE-SERVICES")))
    other = node.ask(MakePlan(variant))
    for moment in ("confirmed", "after a reboot"):
        node.ask(Fresh(variant))
        node.ask(Shell((f"iptables-{variant}", "-t", "nat", "-F", "KUBE-SERVICES")))
        assert do(node, "apply", other).error is None
        assert do(node, "rollback").done
        files = [node.ask(Shell(("cat", str(path)))) for path in (SAVED, PLAN)]
        bring_to(node, variant, plan, moment)
        for path, text in zip((SAVED, PLAN), files, strict=True):
            node.ask(Shell(("sh", "-c", f"cat > {path} <<'END'\n{text}END")))
        insist_on_commands(node, variant)


@pytest.mark.parametrize("kind", DOUBT)
def test_a_file_that_is_not_to_be_trusted(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    """While the table is loaded, its mark vouches for the rules; afterwards nobody does."""
    damaged(node, variant, plan, "confirmed", kind, *FILES)
    insist_restored(node, variant)
    damaged(node, variant, plan, "after a reboot", kind, SAVED)
    insist_restored(node, variant)
    damaged(node, variant, plan, "after a reboot", kind, *FILES)
    insist_on_commands(node, variant)


@pytest.mark.parametrize("kind", ["gone", "a file"])
def test_the_folder_is_not_there(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    bring_to(node, variant, plan, "confirmed")
    node.ask(Folder(kind))
    insist_on_commands(node, variant)


def test_the_folder_was_moved(node: Worker, variant: Variant, plan: str) -> None:
    for moment in ("confirmed", "after a reboot"):
        bring_to(node, variant, plan, moment)
        node.ask(Folder("a link to where it was moved"))
        insist_restored(node, variant)


@pytest.mark.parametrize("kind", ["that others can write", "of another user"])
def test_the_folder_is_not_to_be_trusted(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    bring_to(node, variant, plan, "confirmed")
    node.ask(Folder(kind))
    insist_restored(node, variant)
    result = do(node, "apply", plan)
    assert result.error is not None
    assert "other users can write to" in result.error or "belongs to user" in result.error
    assert read_state(node, variant).nft == (False, False)
    bring_to(node, variant, plan, "after a reboot")
    node.ask(Folder(kind))
    insist_on_commands(node, variant)


def test_the_timer_needs_no_disk(node: Worker, variant: Variant, plan: str) -> None:
    """It restores from memory."""
    assert do(node, "apply", plan, within=1.5).error is None
    node.ask(Folder("gone"))
    state = read_state(node, variant, at_rest=True)
    insist_old(state)
