"""The ways to have kube-proxy's rules in force on the node: what loads them, changes them and begins anew."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backends.kernel.command import run
from backends.kernel.libnftables import NftHandle
from backends.kernel.tc_ebpf.dataplane import Dataplane
from harness.traffic.host import Host, Request
from translate.bpf import BpfOutput
from translate.bpf import emit as emit_bpf
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import NftOutput
from translate.nft import emit as emit_nft
from translate.passes import lower
from translate.read import read_ruleset

__all__ = ["SUBJECTS", "Apply", "Figures", "Load", "Refresh", "Replace", "Rules", "Subject"]

Rules = Mapping[Family, str]
"""What iptables-save prints, of each family."""

_KEPT: Final = "subject"


class Subject(ABC):
    """Rules in force on the node, in whose process this lives. Raises MachineError with what was said."""

    @abstractmethod
    def load(self, rules: Rules) -> None:
        """Put the first rules in force."""

    @abstractmethod
    def change(self, rules: Rules) -> None:
        """Make the rules others while packets pass, with as little as it takes."""

    def replace(self, rules: Rules) -> None:
        """Put all in force anew while packets pass; connections go on."""
        self.change(rules)

    def refresh(self) -> None:  # noqa: B027  # most ask the kernel at each packet
        """Look at the node's devices, addresses and routes again, which have changed."""

    def figures(self) -> dict[str, int]:
        """Return what it can say of itself, in figures: connections that it knows, for example."""
        return {}

    def close(self) -> None:  # noqa: B027  # most leave it to the end of the namespace
        """Let go of what does not end with the namespace."""


class Legacy(Subject):
    """iptables-legacy, the judge: what fails here is the traffic's fault."""

    def load(self, rules: Rules) -> None:
        """Restore both families' rules."""
        for family, text in rules.items():
            _restore(family, text)

    def change(self, rules: Rules) -> None:
        """Restore whole tables, each of which is exchanged at once."""
        self.load(rules)

    def figures(self) -> dict[str, int]:
        """Return the connections that conntrack knows in this namespace."""
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
        """Change elements and, where that is not enough, chains."""
        for family, text in rules.items():
            output = _nft(family, text)
            change = output.change_from(self._outputs[family])
            if change.text:
                self._handle.run(change.text)
            self._outputs[family] = output

    def replace(self, rules: Rules) -> None:
        """Exchange the tables, each in one transaction."""
        self.load(rules)

    def figures(self) -> dict[str, int]:
        """Return the connections that conntrack knows in this namespace."""
        return _conntrack()

    def close(self) -> None:
        """Free the handle."""
        self._handle.close()


class TcEbpf(Subject):
    """The tc program, one dataplane for each family."""

    def __init__(self) -> None:
        self._planes: dict[Family, Dataplane] = {}
        self._outputs: dict[Family, BpfOutput] = {}

    def load(self, rules: Rules) -> None:
        """Load and attach both."""
        for family, text in rules.items():
            self._outputs[family] = output = _bpf(family, text)
            self._planes[family] = plane = Dataplane(output)
            plane.load()

    def change(self, rules: Rules) -> None:
        """Change entries of maps; ValueError where that is not enough."""
        for family, text in rules.items():
            change = _bpf(family, text).change_from(self._outputs[family])
            self._planes[family].change(change.live())
            self._outputs[family] = change.output


SUBJECTS: Final[Mapping[str, Callable[[], Subject]]] = {
    "iptables-legacy": Legacy,
    "nftables": Nftables,
    "tc-ebpf": TcEbpf,
}


@dataclass(frozen=True, slots=True)
class Load(Request):
    """Asks the node to put rules in force by a subject of :data:`SUBJECTS`."""

    subject: str
    rules: Rules

    def run(self, host: Host) -> None:
        """Do so."""
        host.kept[_KEPT] = subject = SUBJECTS[self.subject]()
        subject.load(self.rules)


@dataclass(frozen=True, slots=True)
class Apply(Request):
    """Asks the node's subject for other rules."""

    rules: Rules

    def run(self, host: Host) -> None:
        """Change them."""
        _subject(host).change(self.rules)


@dataclass(frozen=True, slots=True)
class Replace(Request):
    """Asks the node's subject to put all in force anew."""

    rules: Rules

    def run(self, host: Host) -> None:
        """Replace it."""
        _subject(host).replace(self.rules)


@dataclass(frozen=True, slots=True)
class Refresh(Request):
    """Tells the node's subject that devices, addresses or routes have changed."""

    def run(self, host: Host) -> None:
        """Have it look."""
        _subject(host).refresh()


@dataclass(frozen=True, slots=True)
class Figures(Request):
    """Asks the node's subject for its figures."""

    def run(self, host: Host) -> dict[str, int]:
        """Read them."""
        return _subject(host).figures()


def _subject(host: Host) -> Subject:
    found = host.kept[_KEPT]
    assert isinstance(found, Subject)
    return found


def _restore(family: Family, text: str) -> None:
    command = "iptables-legacy-restore" if family is Family.IP else "ip6tables-legacy-restore"
    # The lock is one file for the whole machine, namespaces or not; ours is nobody else's.
    folder = tempfile.mkdtemp(prefix="nfparity-")
    try:
        done = run((command,), text, environment={"XTABLES_LOCKFILE": str(Path(folder, "lock"))})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise MachineError(f"{command} does not take the rules: {done.stderr.strip()}")


def _nft(family: Family, text: str) -> NftOutput:
    return emit_nft(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))


def _bpf(family: Family, text: str) -> BpfOutput:
    return emit_bpf(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))


def _conntrack() -> dict[str, int]:
    count = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    return {"connections": int(count.read_text())}
