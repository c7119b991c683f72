"""Both rulesets in force at once, as they are on a node between the two ends of a switch.

A switch is not one step of the kernel: x_tables and nf_tables have no transaction together, nor has
x_tables one over several tables. What packets meet meanwhile is the whole translation and, besides it, all
or some of the old tables. A backend of that state, with all of them, is compared like any other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from backends.contract import Availability, Job
from backends.kernel.loader import Loader
from backends.kernel.nftables import NftablesBackend, NftablesLoader
from backends.kernel.session import KernelSession, open_session
from backends.kernel.tapnode import TapNode
from backends.kernel.xtables import IptablesBackend, IptablesLoader
from harness.snapshot.stack import Stack
from translate.ir import Account

__all__ = ["OverlapBackend", "OverlapLoader"]


class OverlapLoader(Loader):
    """Loads the iptables rules, then the translation over them."""

    def __init__(self, old: IptablesLoader, new: NftablesLoader) -> None:
        self._old = old
        self._new = new
        self.family = new.family
        self.lists = new.lists

    def load(self, tap: TapNode) -> None:
        """Load both. Raises MachineError."""
        self._old.load(tap)
        self._new.load(tap)
        self.lists = self._old.lists or self._new.lists

    def forget(self, tap: TapNode) -> None:
        """Forget every connection, and empty both's lists."""
        self._old.forget(tap)
        self._new.forget(tap)

    def close(self) -> None:
        """Let go of both."""
        self._new.close()
        self._old.close()


class OverlapBackend:
    """Runs packets through the rules in one stack and their translation, one loaded over the other."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.name = f"iptables-{stack.value}+nftables"

    def probe(self) -> Availability:
        """Say whether both can run here."""
        for one in (IptablesBackend(f"iptables-{self._stack.value}"), NftablesBackend()):
            found = one.probe()
            if not found.ok:
                return found
        return found

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load both into a fresh node. Raises what either raises."""
        from translate.nft import emit
        from translate.passes import lower
        from translate.write import write_ipsets, write_save

        rules = job.ruleset
        output = emit(lower(rules, level=job.level))
        tests = (t for table in rules.tables for c in table.chains for rule in c.rules for t in rule.tests)
        old = IptablesLoader(
            f"iptables-{self._stack.value}",
            write_save(rules),
            rules.family,
            accounts=tuple(dict.fromkeys(test.name for test in tests if isinstance(test, Account))),
            ipsets=write_ipsets(rules.sets),
        )
        new = NftablesLoader(output.text, rules.family, flush=output.flush)
        return open_session(job.node, OverlapLoader(old, new), limits=output.notes)
