"""Clients in lists of ``-m recent``, carried over to the sets of the translation and back.

kube-proxy keeps session affinity in such lists, and firewalls keep banned addresses in them. A list exists as
long as a rule names it. So a table is not restored in one step: before its rules, a chain that no packet
reaches names its lists, which can then be filled (:func:`nfparity.migrate.state.tables.holding`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nfparity.migrate.elements import additions, read_contents, replacements, returning
from nfparity.migrate.planning.translation import output_of_saved
from nfparity.migrate.recentfiles import Jiffies, ListedAddress, capacity, fill_list, is_list, read_list
from nfparity.migrate.state import owned
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable, holding, restore_table
from translate.dataclass import dataclass
from translate.ir import Family
from translate.nft import NftList

__all__ = ["CarriedOver", "ClientsBack", "ClientsForth"]

_NOT_BACK: Final = "clients were not carried back to the lists of -m recent"


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """The number of carried addresses, and of the lists that they were in."""

    addresses: int
    lists: int


class ClientsForth:
    """The transfer of one family's clients from lists into sets. Methods raise MachineError."""

    def __init__(self, family: Family, lists: Sequence[NftList]) -> None:
        self._family, self._lists = family, lists
        self._loaded: dict[str, tuple[ListedAddress, ...]] = {}

    @property
    def carried(self) -> CarriedOver:
        """The addresses that were carried over."""
        filled = [clients for clients in self._loaded.values() if clients]
        return CarriedOver(sum(map(len, filled)), len(filled))

    def elements(self) -> str:
        """Read the lists, and return the commands that add their addresses to the loaded sets."""
        self._loaded = {known.name: read_list(known.name, self._family) for known in self._lists}
        return additions(self._family.value, self._lists, self._loaded, Jiffies.read())

    def catch_up(self) -> None:
        """Load the changes that the lists got between :meth:`elements` and the load of the table.

        From then on, packets fill the sets: in nat, the rules that were loaded last bind connections
        (``nf_nat_inet_fn``), and in other tables a packet passes both rulesets.
        """
        changed: dict[str, list[ListedAddress]] = {}
        for known in self._lists:
            before, now = set(self._loaded.get(known.name, ())), read_list(known.name, self._family)
            there = {client.address for client in now}
            changed[known.name] = [client for client in now if client not in before]
            changed[known.name] += [
                ListedAddress(left.address, ()) for left in before if left.address not in there
            ]
            self._loaded[known.name] = now
        if any(changed.values()):
            owned.load(replacements(self._family.value, self._lists, changed, Jiffies.read()))


class ClientsBack:
    """The transfer of one family's clients back into lists, best effort: ``complaints`` has the failures.

    ``lists`` are those of the loaded translation; None to translate the saved rules again.
    """

    def __init__(self, saved: SavedFamily, lists: Sequence[NftList] | None) -> None:
        self._saved, self._lists = saved, lists
        self._filled: set[str] = set()
        self.complaints: list[str] = []

    def fill(self, table: SavedTable, *, is_held: bool) -> None:
        """Fill the lists of a table that is empty, just before it is restored. Raises nothing.

        A list that exists is in use by another table, and is not changed. But if a command was killed in
        between (``is_held``), the list gets the addresses that it lacks.
        """
        try:
            self._fill([name for name in sorted(table.lists) if is_held or not is_list(name)], table)
        except Exception as e:
            self.complaints.append(f"{_NOT_BACK}: {e}")

    def catch_up(self) -> None:
        """Add the clients that the sets got since the lists were filled. Raises nothing.

        Until the translation is deleted, its nat rules bind all connections.
        """
        try:
            self._add(self._clients(self._filled))
        except Exception as e:
            self.complaints.append(f"{_NOT_BACK}: {e}")

    def _fill(self, names: Sequence[str], table: SavedTable) -> None:
        self._filled |= set(names)
        clients = self._clients(names)
        if clients:
            restore_table(self._saved.variant, self._saved.family, holding(table))
            self._add(clients)

    def _clients(self, names: Collection[str]) -> dict[str, tuple[tuple[str, int], ...]]:
        """Return the addresses that the sets have now, by list, with the numbers of their packets."""
        listing = owned.list_table(self._saved.family) if names else None
        if listing is None:
            return {}
        if self._lists is None:
            self._lists = output_of_saved(self._saved).structure.lists
        contents = read_contents(listing)
        clients = {known.name: returning(known, contents) for known in self._lists if known.name in names}
        return {name: addresses for name, addresses in clients.items() if addresses}

    def _add(self, clients: Mapping[str, Sequence[tuple[str, int]]]) -> None:
        """Add the addresses that the lists lack."""
        room, forgotten = capacity(), 0
        for name, addresses in clients.items():
            there = {listed.address for listed in read_list(name, self._saved.family)}
            fill_list(name, [client for client in addresses[-room:] if client[0] not in there])
            forgotten += max(0, len(addresses) - room)
        if forgotten:
            self.complaints.append(
                f"{_NOT_BACK}: the {forgotten} oldest of them, because a list holds {room} addresses "
                "(ip_list_tot)"
            )
