"""The components of a node other than kube-proxy, which share places with it (``backends.combined.places``).

The iptables rules that stay are one component, and each nftables table of the snapshot is one.
"""

from __future__ import annotations

from typing import Final

from backends.given_nftables.backend import GivenNftBackend
from backends.model.contract import Job
from backends.model.node import Node
from nfparity.snapshot import Snapshot
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError, ParseError
from translate.ir import Family, Ruleset, TableName
from translate.jsoninput import Problems, read_object
from translate.nftlisting import Listing, read_listing

__all__ = [
    "IPTABLES",
    "KUBE_PROXY_TABLE",
    "NativeTables",
    "native_tables",
]

IPTABLES: Final = "the other iptables rules"
"""The name of the component of all iptables rules that stay."""

KUBE_PROXY_TABLE: Final = "kube-proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTables:
    """The nftables tables of a snapshot that neither iptables nor kube-proxy wrote.

    ``loaded`` has one listing for each table that can be loaded on this node; its ``source`` is the name of
    the table (``ip calico``). ``left_out`` are the others, each with the reason. ``names`` are all tables
    that iptables did not write, also kube-proxy's.
    """

    names: tuple[str, ...] = ()
    loaded: tuple[Listing, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions, for reports."""
        notes = [
            f"table {name} cannot be loaded here, and its effect on packets remains unknown: {reason}"
            for name, reason in self.left_out
        ]
        if self.loaded:
            names = ", ".join(listing.source for listing in self.loaded)
            notes.append(
                f"other nftables tables are loaded in both modes: {names}; if they change an outcome,"
                " the kernel's outcome is taken as correct"
            )
        return tuple(notes)

    def reaching(self, family: Family) -> NativeTables:
        """Return the tables that see packets of a family."""
        return replace(self, loaded=tuple(each for each in self.loaded if each.reaches(family)))


def native_tables(snapshot: Snapshot, node: Node) -> NativeTables:
    """Return the nftables tables of a snapshot, after loading each of them in a private namespace.

    Raises ParseError for a file that is not the output of ``nft -j list ruleset``.
    """
    if snapshot.nft is None:
        return NativeTables()
    file = f"{snapshot.name}/nft.json"
    written_by_iptables = {(family.value, name.value) for family in Family for name in TableName}
    tables: dict[tuple[str, str], None] = {}
    problems = Problems()
    for entry in read_object(snapshot.nft, name=file, problems=problems).objects("nftables"):
        table = entry.object("table")
        if table is not None:
            tables[table.text("family", ""), table.text("name", "")] = None
    problems.raise_if_any()
    tables = {table: None for table in tables if table not in written_by_iptables}
    loaded: list[Listing] = []
    left_out: list[tuple[str, str]] = []
    for own in tables:
        if own[1] == KUBE_PROXY_TABLE:
            continue
        others = written_by_iptables | {other for other in tables if other != own}
        name = " ".join(own)
        try:
            listing = replace(read_listing(snapshot.nft, name=file, without=others), source=name)
            _try(snapshot.nft, listing, others, node)
        except (ParseError, MachineError, InputError) as e:
            left_out.append((name, str(e).partition("\n")[0]))
        else:
            loaded.append(listing)
    return NativeTables(names=tuple(map(" ".join, tables)), loaded=tuple(loaded), left_out=tuple(left_out))


def _try(text: str, listing: Listing, without: set[tuple[str, str]], node: Node) -> None:
    """Load a table in a private namespace."""
    family = next((family for family in Family if listing.reaches(family)), None)
    if family is None:
        raise InputError(f"tables of the family {listing.families[0]} see no packets here")
    backend = GivenNftBackend(listing.source, text, without=without)
    availability = backend.probe()
    if not availability.ok:
        raise MachineError(str(availability.reason))
    with backend.open(Job(rules=Ruleset(family=family, tables=()), node=node)):
        pass
