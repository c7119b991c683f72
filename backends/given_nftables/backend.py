"""A given nftables ruleset, loaded unchanged, for example that of kube-proxy or of a firewall.

It replaces a translation: the rules of the job are not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

from backends.combined.backend import CombinedLoader
from backends.given_nftables.trace import (
    ListedChain,
    Tracer,
    filled_sets,
    listed_port_boundaries,
    read_chains,
)
from backends.model.contract import Availability, Job
from backends.model.node import Node
from backends.nftables.connections import gives_source_ports, sets_zones
from backends.nftables.emptying import SetEmptier
from backends.replay.availability import kernel_lacks
from backends.replay.limits import bounded, death_by
from backends.replay.loader import JIFFIES, Loader, Watched
from backends.replay.session import KernelSession, open_session
from backends.replay.worker import WorkerEndedError
from backends.testbed.libnftables import NftHandle, find_bindings
from backends.testbed.tapnode import TapNode
from translate.dataclass import replace
from translate.errors import Diagnostic, InputError, MachineError, Note, ParseError
from translate.ir import Family, Origin
from translate.nftlisting import Form, Listing, Script, read_listing

__all__ = ["GivenNftBackend", "GivenNftLoader"]

IPTABLES_CHAINS_FIRST: Final = ", iptables chains first"
"""The end of the name of a ruleset that is loaded before the iptables rules."""


class GivenNftLoader(Loader):
    """Loads a listing through one permanent handle, and empties the sets that packets fill.

    The rules are watched, because their random choices cannot be known otherwise. If rules count packets
    (``limit``, ``quota``), the whole ruleset is loaded again between flows, so that no flow depends on
    earlier ones.
    """

    def __init__(self, listing: Listing, family: Family) -> None:
        self._scripts = listing.scripts
        self._flush = listing.flush
        self._filled = frozenset((s.family, s.table, s.name) for s in listing.filled)
        self._counting = bool(listing.counting)
        self.lists = bool(listing.filled) or self._counting
        self.registers_again = self._counting
        self.family = family
        if any("ct count" in script.text for script in self._scripts):
            self.gap = JIFFIES
        self.pins = any("cpu" in script.text for script in self._scripts)
        self._handle: NftHandle | None = None
        self._own: tuple[str, ...] = ()
        self._chains: Mapping[tuple[str, str, str], ListedChain] = {}
        self._traceable = False  # True if the chains name every set that packets fill
        self._tracer: Tracer | None = None
        self._emptier: SetEmptier | None = None

    def load(self, tap: TapNode) -> None:
        """Load the ruleset.

        Raises ParseError with the places that nft does not understand, and MachineError for objects that the
        kernel refuses.
        """
        self._handle = NftHandle()
        before = self._handle.run("list tables").splitlines()
        with bounded(sum(len(script.text) for script in self._scripts)):
            for script in self._scripts:
                self._load(self._handle, script)
        self._own = tuple(line for line in self._handle.run("list tables").splitlines() if line not in before)
        # The kernel lists a ruleset in the same form whether it was loaded from text or from JSON.
        loaded = "".join(self._handle.run(f"list {table}\n") for table in self._own)
        self._chains = read_chains(loaded)
        self.port_boundaries = listed_port_boundaries(loaded, self._chains.values())
        self.zones, self.gives_ports = sets_zones(loaded), gives_source_ports(loaded)
        self.watches = any(c.fills or c.dependent or c.rarest < 1 for c in self._chains.values())
        self.chance = bool(self._chains)
        self._traceable = filled_sets(self._chains) == self._filled

    def _load(self, handle: NftHandle, script: Script) -> None:
        if script.form is Form.JSON:
            error, _ = handle.attempt(script.text, json=True)
            if error is not None:
                raise self._first_fault(script) or MachineError(f"{_REFUSED}: {error}")
        else:
            error = handle.attempt_lines(script.text)
            if error is not None:
                raise _fault(error, script.origins)

    def _first_fault(self, script: Script) -> ParseError | MachineError | None:
        """Try the commands of JSON one by one to find the one that libnftables rejects."""
        assert self._handle is not None
        for command, origin, title in zip(script.commands, script.origins, script.titles, strict=True):
            error, _ = self._handle.attempt(f'{{"nftables": [{command}]}}', json=True)
            if error is not None:
                return _fault(error, (origin,), title=title)
        return None

    def forget_lists(self) -> None:
        """Empty the sets that packets fill, and reset rules that count."""
        self._forget(None)

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        """The same, but only for the sets of chains that watched packets visited, whatever the names.

        Of the thousands of sets that session affinity needs in a large cluster, a flow fills one or two.
        """
        self._forget(self._tracer.take_filled() if self._tracer is not None and self._traceable else None)

    def _forget(self, filled: frozenset[tuple[str, str, str]] | None) -> None:
        if self._counting:
            self.register_again()
        elif self._flush:
            if self._emptier is None:
                self._emptier = SetEmptier(self._flush)
            self._emptier.empty(filled)

    def register_again(self) -> None:
        """Delete the tables, and load them again."""
        assert self._handle is not None
        self._handle.run("".join(f"delete {table}\n" for table in self._own))
        for script in self._scripts:
            self._load(self._handle, script)

    def watch(self) -> None:
        """Begin to record the rules that packets meet."""
        assert self._handle is not None
        if self._tracer is None:
            self._tracer = Tracer(self.family, self._chains, self._handle)
        self._tracer.watch()

    def watched(self) -> Watched:
        """Return the random choices and the state of the rules that packets met."""
        watched = Watched() if self._tracer is None else self._tracer.watched()
        return replace(watched, lists=watched.lists or self._counting)

    def close(self) -> None:
        """Free the handle."""
        if self._emptier is not None:
            self._emptier.close()
            self._emptier = None
        if self._tracer is not None:
            self._tracer.close()
            self._tracer = None
        if self._handle is not None:
            self._handle.close()
            self._handle = None


class GivenNftBackend:
    """Runs packets through a given nftables ruleset on this kernel.

    ``name`` is its name in reports: that of its file. ``without`` are the families and names of tables that
    are not loaded.
    ``beside`` returns the loader of other rules that are loaded first for a family, or None; with ``first``
    the ruleset is loaded first, so that the chains of the other rules run first at equal priority. The
    constructor raises ParseError for text that cannot be loaded.
    """

    def __init__(
        self,
        name: str,
        text: str,
        *,
        without: Container[tuple[str, str]] = (),
        beside: Callable[[Family], Loader | None] = lambda _: None,
        first: bool = False,
    ) -> None:
        self._name = f"{name}{IPTABLES_CHAINS_FIRST}" if first else name
        self._listing = read_listing(text, name=name, without=without)
        self._beside = beside
        self._first = first

    @property
    def name(self) -> str:
        """The given name of the ruleset, and the order if it is loaded first."""
        return self._name

    @property
    def listing(self) -> Listing:
        """The ruleset."""
        return self._listing

    def probe(self) -> Availability:
        """Return whether the bindings exist and nodes can be made here; the ruleset is not loaded."""
        try:
            find_bindings()
        except MachineError as e:
            return Availability(False, str(e))
        return kernel_lacks(GivenNftLoader(_PROBE, Family.IP))

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the ruleset into a fresh node; the job gives the node and the family.

        Raises ParseError if it has no table for the job's family, names a device that the node does not have,
        or has text that nft does not understand.
        """
        family = job.ruleset.family
        before = self._beside(family)
        if before is None and not self._listing.reaches(family):
            families = ", ".join(self._listing.families) or "none"
            message = (
                f"no table of this ruleset sees packets of {family.value}; its tables are of: {families}"
            )
            raise ParseError((Diagnostic(Origin(self._name), message),))
        _check_devices(self._listing, job.node)
        doubts = [Note(origin, self._name, "iptables-nft", _DOUBT) for origin in self._listing.doubtful]
        rates = [Note(origin, self._name, "rate", _RATE) for origin in self._listing.counting]
        notes = (*doubts, *rates)
        loader: Loader = GivenNftLoader(self._listing, family)
        if before is not None:
            loader = CombinedLoader(loader, before) if self._first else CombinedLoader(before, loader)
        return _opened(self._name, open_session(job.node, loader, limits=notes))


@contextmanager
def _opened(name: str, opening: AbstractContextManager[KernelSession]) -> Iterator[KernelSession]:
    """Open a session; name the ruleset in the error if libnftables crashes the process."""
    with ExitStack() as stack:
        try:
            session = stack.enter_context(opening)
        except WorkerEndedError as e:
            exceeded = death_by(e.status)
            if exceeded is not None:
                raise InputError(f"{name}: this ruleset was not loaded: {exceeded}") from e
            raise MachineError(
                f"{name}: {e} while it loaded this ruleset; nft -c -f shows whether libnftables crashes on it"
            ) from e
        yield session


_DOUBT: Final = (
    "looks like a chain of iptables-nft, which nft lists incompletely; if it is one, the rules that run here "
    "differ from those of the node (iptables-nft-save prints all of them)"
)
_RATE: Final = (
    "depends on packet rates or counts, and flows are sent faster here than on a node: its effect may differ"
)
_PROBE: Final = read_listing("table ip nfparity_probe {\n}\n", name="probe")


def _check_devices(listing: Listing, node: Node) -> None:
    present = {"lo", *(interface.name for interface in node.interfaces)}
    faults = tuple(
        Diagnostic(
            origin, f"this names the device {device}, which the node does not have ({_listed(present)})"
        )
        for device, origin in listing.devices
        if device not in present
    )
    if faults:
        raise ParseError(faults)


def _listed(names: set[str]) -> str:
    return f"it has {', '.join(sorted(names))}"


_CHANCE: Final = re.compile(r"\b(?:numgen|jhash|symhash)\b")
_ERROR: Final = re.compile(r"^[^\s:]+:(\d+):\d+-\d+: Error: ([^;\n]*)", re.MULTILINE)
_REFUSED: Final = "nftables does not take the ruleset"
_KERNEL: Final = "Could not process rule: "
_MOST: Final = 10


def _fault(error: str, origins: Sequence[Origin], *, title: str = "") -> ParseError | MachineError:
    """Return an error that places the messages of libnftables.

    ``origins`` are the places of the lines of the text that libnftables was given.
    """
    messages = [(int(line), text.strip()) for line, text in _ERROR.findall(error)]
    if not messages:
        return MachineError(f"{_REFUSED}: {error}")
    placed = [
        (origins[line - 1] if 0 < line <= len(origins) else origins[0], text)
        for line, text in dict.fromkeys(messages)
    ][:_MOST]
    subject = f"{title}: " if title else ""
    if any(text.startswith(_KERNEL) for _, text in placed):
        refused = [
            (o, f"{subject}the kernel refuses this: {text.removeprefix(_KERNEL)}") for o, text in placed
        ]
        return MachineError("\n".join(Diagnostic(*fault).render() for fault in refused))
    return ParseError(
        tuple(Diagnostic(o, f"{subject}nft does not understand this: {text}") for o, text in placed)
    )
