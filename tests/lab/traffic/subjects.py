"""The ways to load kube-proxy's rules on the node, to change them and to replace them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from backends.tc_ebpf.counters import read_counters
from backends.testbed.command import own_xtables_lock, run
from backends.testbed.libnftables import NftHandle
from nfparity.tc import DataplaneRules, Installed, LoadResult
from nfparity.tc.place import here
from nfparity.tc.record import Record
from tests.lab.traffic.host import Host, Request
from translate.bpf import CONNECTIONS
from translate.bpf import emit as emit_bpf
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import NftOutput
from translate.nft import emit as emit_nft
from translate.passes import lower
from translate.read import read_ruleset

__all__ = [
    "SUBJECTS",
    "Apply",
    "Figures",
    "Load",
    "LoadSmall",
    "Refresh",
    "Replace",
    "Rules",
    "Subject",
    "installable",
]

Rules = Mapping[Family, str]
"""The output of iptables-save, for each family."""

_KEPT: Final = "subject"


class Subject(ABC):
    """Rules that are loaded on the node, in the node's process. Methods raise MachineError with the tool's
    message.
    """

    @abstractmethod
    def load(self, rules: Rules) -> None:
        """Load the first rules."""

    @abstractmethod
    def change(self, rules: Rules) -> None:
        """Change the rules while packets pass, with as few commands as possible."""

    def replace(self, rules: Rules) -> None:
        """Load rules of another shape while packets pass; connections continue."""
        self.change(rules)

    def refresh(self) -> None:  # noqa: B027  # most ask the kernel at each packet
        """Read the node's changed devices, addresses and routes again."""

    def figures(self) -> dict[str, int]:
        """Return figures about the rules, such as the number of tracked connections."""
        return {}

    def close(self) -> None:  # noqa: B027  # most leave it to the end of the namespace
        """Release resources that do not end with the namespace."""


class Legacy(Subject):
    """iptables-legacy, the reference: if connections fail here, the test traffic itself is faulty."""

    def load(self, rules: Rules) -> None:
        """Restore both families' rules."""
        for family, text in rules.items():
            _restore(family, text)

    def change(self, rules: Rules) -> None:
        """Restore whole tables; each is replaced in one step."""
        self.load(rules)

    def figures(self) -> dict[str, int]:
        """Return the number of conntrack's connections in this namespace."""
        return _conntrack()


class Nftables(Subject):
    """The nftables translation, -O2."""

    def __init__(self) -> None:
        self._handle = NftHandle()
        self._outputs: dict[Family, NftOutput] = {}

    def load(self, rules: Rules) -> None:
        """Load one table for each family."""
        for family, text in rules.items():
            self._outputs[family] = output = _nft(family, text)
            self._handle.run(output.text)

    def change(self, rules: Rules) -> None:
        """Change elements and, if that is not enough, chains."""
        for family, text in rules.items():
            output = _nft(family, text)
            change = output.change_from(self._outputs[family])
            if change.text:
                self._handle.run(change.text)
            self._outputs[family] = output

    def figures(self) -> dict[str, int]:
        """Return the number of conntrack's connections in this namespace."""
        return _conntrack()

    def close(self) -> None:
        """Free the handle."""
        self._handle.close()


class TcEbpf(Subject):
    """The tc program, a dataplane for each family, as ``nfparity tc load`` leaves it.

    ``connections`` is the size of the connection tables.
    """

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections

    def load(self, rules: Rules) -> None:
        """Load and attach the program of each family."""
        self._come_to(rules, LoadResult.FIRST)

    def change(self, rules: Rules) -> None:
        """Change entries of maps."""
        self._come_to(rules, LoadResult.CHANGED, LoadResult.SAME)

    def replace(self, rules: Rules) -> None:
        """Replace the program."""
        self._come_to(rules, LoadResult.REPLACED)

    def refresh(self) -> None:
        """Refresh both dataplanes."""
        for family in Family:
            Installed(family).refresh()

    def figures(self) -> dict[str, int]:
        """Return the sizes of the connection tables and the counters, summed over both families."""
        counts: Counter[str] = Counter()
        for family in Family:
            place = here(family)
            record = Record.read(place.record)
            assert record is not None
            for name in ("conns", "replies", "sources"):
                table = place.map(record.generation, name)
                counts[name] += sum(1 for _ in table.entries())
                table.close()
            counters = place.map(record.generation, "counters")
            counts.update(read_counters(counters))
            counters.close()
        return dict(counts)

    def close(self) -> None:
        """Unload the programs."""
        for family in Family:
            Installed(family).unload()

    def _come_to(self, rules: Rules, *wanted: LoadResult) -> None:
        for family, text in rules.items():
            loaded = Installed(family).load(installable(family, text, self._connections))
            if loaded not in wanted:
                raise MachineError(f"the load of the {family.value} rules had another result: {loaded.value}")


SUBJECTS: Final[Mapping[str, Callable[[], Subject]]] = {
    "iptables-legacy": Legacy,
    "nftables": Nftables,
    "tc-ebpf": TcEbpf,
}


@dataclass(frozen=True, slots=True)
class Load(Request):
    """Loads rules on the node by a subject of :data:`SUBJECTS`."""

    subject: str
    rules: Rules

    def run(self, host: Host) -> None:
        """Load the rules."""
        host.kept[_KEPT] = subject = SUBJECTS[self.subject]()
        subject.load(self.rules)


@dataclass(frozen=True, slots=True)
class LoadSmall(Request):
    """Loads the tc program on the node, with a small connection table."""

    rules: Rules
    connections: int

    def run(self, host: Host) -> None:
        """Load the program."""
        host.kept[_KEPT] = subject = TcEbpf(self.connections)
        subject.load(self.rules)


@dataclass(frozen=True, slots=True)
class Apply(Request):
    """Changes the rules of the node's subject."""

    rules: Rules

    def run(self, host: Host) -> None:
        """Change the rules."""
        _subject(host).change(self.rules)


@dataclass(frozen=True, slots=True)
class Replace(Request):
    """Replaces the rules of the node's subject by rules of another shape
    (:func:`~tests.lab.traffic.plan.another_shape`).
    """

    rules: Rules

    def run(self, host: Host) -> None:
        """Replace the rules."""
        _subject(host).replace(self.rules)


@dataclass(frozen=True, slots=True)
class Refresh(Request):
    """Refreshes the node's subject after a change of devices, addresses or routes."""

    def run(self, host: Host) -> None:
        """Refresh the subject."""
        _subject(host).refresh()


@dataclass(frozen=True, slots=True)
class Figures(Request):
    """Returns the figures of the node's subject."""

    def run(self, host: Host) -> dict[str, int]:
        """Read the figures."""
        return _subject(host).figures()


def _subject(host: Host) -> Subject:
    kept = host.kept[_KEPT]
    assert isinstance(kept, Subject)
    return kept


def installable(family: Family, text: str, connections: int = CONNECTIONS) -> DataplaneRules:
    """Translate rules for ``nfparity tc``'s dataplane."""
    output = emit_bpf(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    output = replace(output, connections=connections)
    return DataplaneRules(
        output=output, name="rules", digest=hashlib.sha256(text.encode()).hexdigest(), level=2
    )


def _restore(family: Family, text: str) -> None:
    command = "iptables-legacy-restore" if family is Family.IP else "ip6tables-legacy-restore"
    with own_xtables_lock() as lock:
        done = run((command,), text, environment=lock)
    if done.returncode:
        raise MachineError(f"{command} does not take the rules: {done.stderr.strip()}")


def _nft(family: Family, text: str) -> NftOutput:
    return emit_nft(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))


def _conntrack() -> dict[str, int]:
    count = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    return {"connections": int(count.read_text())}
