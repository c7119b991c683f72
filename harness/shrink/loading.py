"""Reduction of rules whose translation cannot be loaded."""

from __future__ import annotations

import re
from collections.abc import Callable

from backends.model.contract import Backend, Job
from harness.shrink.engine import reduce_with, smaller_lists
from harness.shrink.proposals import (
    Shown,
    read_again,
    rule_ids,
    with_rules,
    without_call,
    without_part,
)
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError, UnsupportedError

__all__ = ["LoadShrinker", "complaint"]


def complaint(message: str) -> str:
    """Return the first error in a message of nft, without its place and without numbers."""
    match = re.search(r"Error: (.*)", message)
    text = match[1] if match else message.strip().splitlines()[0]
    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "N", text)


@dataclass(slots=True)
class LoadShrinker:
    """Finds a small ruleset that a backend cannot load, with the same first error of nft.

    ``tell`` is called with the numbers of rules that are left, of steps (0), and of attempts. ``message`` is
    the error of the smallest ruleset so far.
    """

    backend: Backend
    wanted: str
    level: int
    tell: Callable[[int, int, int], None]
    attempts: int = 0
    message: str = ""

    def shrink(self, job: Job, shown: Shown) -> Shown:
        """Return the smallest ruleset found. InputError if nft loads the rewritten rules."""

        def fails(smaller: Shown) -> bool:
            return self._fails(replace(job, rules=smaller.ruleset), smaller)

        start = read_again(shown.ruleset)
        if start is None or not fails(replace(shown, ruleset=start)):
            raise InputError(f"{self.backend.name} loads the rules when nfparity has rewritten them")
        best = replace(shown, ruleset=start)
        size = None
        while size != (size := len(rule_ids(best.ruleset))):
            here = best
            kept = smaller_lists(
                rule_ids(here.ruleset),
                lambda ids, here=here: (  # type: ignore[misc]  # the default binds this round's value
                    (made := with_rules(here.ruleset, frozenset(ids))) is not None
                    and fails(replace(here, ruleset=made))
                ),
            )
            best = replace(best, ruleset=with_rules(best.ruleset, frozenset(kept)) or best.ruleset)
            best = reduce_with(best, (without_call, without_part), fails)
        return best

    def _fails(self, job: Job, shown: Shown) -> bool:
        self.attempts += 1
        try:
            with self.backend.open(job):
                return False
        except UnsupportedError:
            return False
        except MachineError as e:
            if complaint(str(e)) != self.wanted:
                return False
            self.message = str(e)
            self.tell(len(rule_ids(shown.ruleset)), 0, self.attempts)
            return True
