"""The two iptables: x_tables itself (legacy), and the iptables command over nf_tables.

Both load the text that ``translate.write`` makes of the rules as read. The simulator is tested against
iptables-legacy on a real kernel.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from backends.iptables.buckets import hashlimit_names, tables_to_reload, with_counters
from backends.iptables.namednumbers import numbered_names
from backends.iptables.variation import may_vary
from backends.model.contract import Availability, Job
from backends.model.sourceports import gives_source_ports, port_boundaries
from backends.replay.availability import kernel_lacks
from backends.replay.loader import JIFFIES, Loader, RuleId, refuse_endless_walks
from backends.replay.session import KernelSession, open_session
from backends.testbed.command import find_tool, own_xtables_lock, run
from backends.testbed.netlink import Accounting
from backends.testbed.tapnode import TapNode
from translate.dataclass import dataclass
from translate.errors import MachineError, Refusal, UnsupportedError
from translate.ir import Account, Family, Ruleset
from translate.ir.bytecode import ANCILLARY, Ancillary
from translate.read.save import lines_by_table

__all__ = ["VARIANTS", "IptablesBackend", "IptablesLoader", "loader_of", "read_counters"]

VARIANTS: Final = ("iptables-legacy", "iptables-nft")
_COUNTED: Final = re.compile(r"^\[(\d+):\d+\] -A (\S+)")

_HASHED: Final = tuple(Path(f"/proc/self/net/{name}_hashlimit") for name in ("ipt", "ip6t"))
"""The tables of ``-m hashlimit`` in this network namespace, one file each."""

_CREATE: Final = re.compile(r"^create .*\n", re.MULTILINE)

_LISTS: Final = Path("/proc/self/net/xt_recent")
"""The lists of ``-m recent`` in this network namespace, one file each; exists if ``xt_recent`` is loaded."""


_LOADS_PROCESSOR: Final = f" {ANCILLARY + Ancillary.CPU}"
"""The last number of an instruction that loads the processor's number (``SKF_AD_CPU``)."""


class IptablesLoader(Loader):
    """Loads ``iptables-save`` text with the restore command of one variant and family.

    ``accounts`` are the nfacct objects to create first, ``ipsets`` is text for ``ipset restore``.
    """

    leaves_nothing = True

    def __init__(
        self,
        variant: str,
        text: str,
        family: Family = Family.IP,
        *,
        accounts: tuple[str, ...] = (),
        ipsets: str = "",
    ) -> None:
        self._variant = _command(variant, family)
        self.family = family
        self._text = text
        self._accounts = accounts
        self._ipsets = ipsets
        self._names: frozenset[str] = frozenset()
        """The lists of ``-m recent``."""
        self._files: dict[str, int] = {}
        """The files of some of them, opened for writing."""
        self._filled = " -j SET " in text
        if " -m connlimit " in text:
            self.gap = JIFFIES
        self.counts = " -m connbytes " in text
        self.pins = " -m cpu " in text or (" -m bpf " in text and _LOADS_PROCESSOR in text)
        self.zones = " -j CT " in text and " --zone" in text
        self.chance = may_vary(text)
        self._limited = tables_to_reload(text)
        # A restore of iptables-nft deletes its table and adds it again; x_tables keeps its hooks.
        self.registers_again = bool(self._limited) and "-nft" in self._variant

    def load(self, tap: TapNode) -> None:
        """Load the ipsets and the rules; raises MachineError with the command's message."""
        if self._accounts:
            with Accounting() as objects:
                for name in self._accounts:
                    objects.add(name)
        if self._ipsets:
            self._restore_sets(self._ipsets)
        self._run(f"{self._variant}-restore", self._text)
        self._names = frozenset(file.name for file in _LISTS.iterdir()) if _LISTS.is_dir() else frozenset()
        self.lists = bool(self._names) or self._filled or bool(self._limited)

    def forget_lists(self) -> None:
        """Load tables with ``-m limit`` again, which refills the buckets, empty the lists of ``-m recent``,
        and restore ipsets.

        The counters of rules stay as they are.
        """
        if self._limited:
            self._reload()
        self._empty(self._names)
        if self._filled:
            self._restore_sets("flush\n" + _CREATE.sub("", self._ipsets))

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        """The same, but only for these lists of ``-m recent`` if packets leave no other state."""
        if names is None or self._limited or self._filled:
            self.forget_lists()
        else:
            self._empty(names)

    def _empty(self, names: frozenset[str]) -> None:
        for name in names:
            file = self._files.get(name)
            if file is None:
                file = self._files[name] = os.open(_LISTS / name, os.O_WRONLY | os.O_CLOEXEC)
            os.write(file, b"/")  # recent_mt_proc_write

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def _reload(self) -> None:
        """Load the tables with buckets again, all of them without rules before any of them has rules.

        New rules would share the tables of ``-m hashlimit`` that an old rule still uses. A list of
        ``-m recent`` ends with its last rule, and its file with it.
        """
        loaded = ""
        for table in self._limited:
            saved = self._run(f"{self._variant}-save", "", "-c", "-t", table)
            loaded += with_counters(self._text, table, saved)
        hashed = set(hashlimit_names(loaded))
        if hashed:
            empty = "".join(f"*{table}\nCOMMIT\n" for table in self._limited)
            self._run(f"{self._variant}-restore", empty)
            while any(
                file.name in hashed for folder in _HASHED if folder.is_dir() for file in folder.iterdir()
            ):
                time.sleep(0.001)  # nf_tables frees its rules a moment later
        self._run(f"{self._variant}-restore", loaded, "-c")
        self._close_files()

    def _restore_sets(self, text: str) -> None:
        done = run(("ipset", "restore"), text)
        if done.returncode:
            raise MachineError(f"ipset does not take the sets: {done.stderr.strip()}")

    def counters(self) -> Mapping[RuleId, int]:
        """Return the packet counter of every rule, read back with ``-c``."""
        return read_counters(self._run(f"{self._variant}-save", "", "-c"))

    def close(self) -> None:
        """Close the files of the lists."""
        self._close_files()

    def _run(self, command: str, text: str, *arguments: str) -> str:
        with own_xtables_lock() as lock:
            done = run((command, *arguments), text, environment=lock)
        if done.returncode:
            # Its last line is only the advice to try --help.
            message = "\n".join(x for x in done.stderr.splitlines() if x and not x.startswith("Try `"))
            message = message or f"status {done.returncode}"
            raise MachineError(f"{command} does not take the rules: {message}")
        return done.stdout


def read_counters(text: str) -> dict[RuleId, int]:
    """Return the packet counters in the output of ``iptables-save -c``."""
    counters: dict[RuleId, int] = {}
    lengths: Counter[tuple[str, str]] = Counter()
    for table, line in lines_by_table(text):
        match = _COUNTED.match(line)
        if match:
            chain = match[2]
            counters[table, chain, lengths[table, chain]] = int(match[1])
            lengths[table, chain] += 1
    return counters


@dataclass(frozen=True, slots=True)
class IptablesBackend:
    """Runs packets through one of :data:`VARIANTS` on this kernel."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in VARIANTS:
            raise ValueError(f"no iptables variant {self.name!r}")

    def probe(self) -> Availability:
        """Return whether the tool exists and this kernel accepts one of its rules in a namespace."""
        command = f"{self.name}-restore"
        if find_tool(command) is None:
            return Availability(False, f"{command} is not installed (Debian package iptables)")
        return kernel_lacks(IptablesLoader(self.name, _PROBE))

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the job's rules as they were read, and their ipsets, into a fresh node."""
        return open_session(job.node, loader_of(self.name, job.ruleset))


def loader_of(variant: str, ruleset: Ruleset) -> IptablesLoader:
    """Return a loader for rules as they were read, with their ipsets and accounting objects.

    Raises UnsupportedError if the members of an ipset are not known, and for endless walks; MachineError
    without ``ipset``.
    """
    from translate.write import write_ipsets, write_save

    refuse_endless_walks(ruleset, variant)
    refusals = tuple(
        Refusal(rule.origin, variant, "ipset", f"the members of ipset {name} are not known")
        for rule, name in ruleset.sets_not_given()
    )
    if refusals:
        raise UnsupportedError(refusals)
    if ruleset.sets and find_tool("ipset") is None:
        raise MachineError("ipset is not installed (Debian package ipset)")
    loader = IptablesLoader(
        variant,
        write_save(numbered_names(ruleset)),
        ruleset.family,
        accounts=_accounts(ruleset),
        ipsets=write_ipsets(ruleset.sets),
    )
    loader.port_boundaries = port_boundaries(ruleset)
    loader.gives_ports = gives_source_ports(ruleset)
    return loader


def _accounts(ruleset: Ruleset) -> tuple[str, ...]:
    """The objects of nfacct rules, which must exist when the rules are loaded (``nfacct_mt_checkentry``)."""
    tests = (t for table in ruleset.tables for c in table.chains for rule in c.rules for t in rule.tests)
    return tuple(dict.fromkeys(test.name for test in tests if isinstance(test, Account)))


def _command(variant: str, family: Family) -> str:
    return variant if family is Family.IP else variant.replace("iptables", "ip6tables", 1)


_PROBE: Final = (
    "*filter\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n"
    "*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"
)
