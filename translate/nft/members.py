"""The elements of a map that come from members of families, written without a node for each.

A constant is spelled in nft as it is in iptables: addresses in their canonical form and ports as numbers,
which ``translate.read.families`` has seen to. So an element is a format with constants in its places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import Final, overload

from translate.ir import Entry, Family, Field, Lookup, Member, MemberEntries, Value
from translate.nft.model import NftElement
from translate.nft.printer.fields import keys

__all__ = ["MemberElements", "all_elements"]


@dataclass(frozen=True, slots=True)
class _Form:
    """One element of each member: formats, and what takes those of its constants that belong into the key.

    Its rule is that ``offset`` lines into ``part``. ``target`` is the number of the constant whose address
    and port are the data.
    """

    key: str
    take: Callable[[tuple[str, ...]], Sequence[str]]
    data: str | None
    target: int | None
    part: int
    offset: int

    def values(self, member: Member) -> tuple[object, ...]:
        """Return what belongs into key, line and data of a member's element."""
        taken = self.take(member.constants)
        line = member.starts[self.part] + self.offset
        if self.target is None:
            return (*taken, line)
        address, _, port = member.constants[self.target].rpartition(":")
        return (*taken, line, f"{address.strip('[]')} . {port}")


class MemberElements(Sequence[NftElement]):
    """The elements of ``entries``, in their order.

    ``made`` are the elements of the entries that the sample has, by the identity of the entry;
    ``translated`` says that their data are targets of DNAT.
    """

    def __init__(
        self,
        entries: MemberEntries,
        fields: Sequence[Field],
        family: Family,
        made: Mapping[int, Sequence[NftElement]],
        *,
        translated: bool,
    ) -> None:
        self._entries: Final = entries
        self._made: Final = made
        self._forms: Final = [
            [
                _Form(
                    " . ".join(key),
                    _take([v for v in recipe.key if isinstance(v, int)]),
                    "%s" if translated else element.data and element.data.replace("%", "%%"),
                    recipe.target if translated else None,
                    recipe.part,
                    recipe.offset,
                )
                for recipe, example in zip(batch.recipes, batch.examples, strict=True)
                for key, element in zip(
                    product(*[_key(f, v, family) for f, v in zip(fields, recipe.key, strict=True)]),
                    made.get(id(example), ()),
                    strict=False,  # an entry that no packet has is no element
                )
            ]
            for batch in entries.batches
        ]

    def __len__(self) -> int:
        single = sum(len(self._made.get(id(entry), ())) for _, entry in self._entries.others)
        batches = zip(self._entries.batches, self._forms, strict=True)
        return single + sum(len(batch.family.members) * len(forms) for batch, forms in batches)

    def __iter__(self) -> Iterator[NftElement]:
        return iter(self._whole)

    @overload
    def __getitem__(self, index: int) -> NftElement: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[NftElement]: ...

    def __getitem__(self, index: int | slice) -> NftElement | Sequence[NftElement]:
        return self._whole[index]

    def __eq__(self, other: object) -> bool:
        return self._whole == (other._whole if isinstance(other, MemberElements) else other)

    def __hash__(self) -> int:
        return hash(self._whole)

    def __bool__(self) -> bool:
        return True  # a family has members

    def written(
        self, write: Callable[[NftElement], str], write_format: Callable[[str, str | None], str]
    ) -> Iterator[str]:
        """Yield every element as ``write`` writes it.

        ``write_format`` writes formats of key and data, with the number of the line (``%d``) between them.
        """
        forms = [
            [(write_format(form.key, form.data), form.values) for form in forms] for forms in self._forms
        ]
        for _, number, source in self._entries.rows():
            if isinstance(source, Entry):
                yield from map(write, self._made.get(id(source), ()))
            else:
                for text, values in forms[number]:
                    yield text % values(source)

    @cached_property
    def _whole(self) -> tuple[NftElement, ...]:
        found: list[NftElement] = []
        for _, number, source in self._entries.rows():
            if isinstance(source, Entry):
                found += self._made.get(id(source), ())
                continue
            for form in self._forms[number]:
                values = form.values(source)
                at = len(form.take(source.constants))
                origin = self._entries.origin(source.starts[form.part] + form.offset)
                data = form.data if form.data is None else form.data % values[at + 1 :]
                found.append(NftElement(key=form.key % values[:at], data=data, origin=origin))
        return tuple(found)


def all_elements(
    lookup: Lookup,
    made: Sequence[tuple[Entry, NftElement | None]],
    family: Family,
    *,
    translated: bool = False,
) -> Sequence[NftElement]:
    """Return the elements of a lookup, given those of its entries, or of those that the sample has.

    ``translated`` says that their data are targets of DNAT.
    """
    if not isinstance(lookup.entries, MemberEntries):
        return tuple([element for _, element in made if element is not None])
    by_entry: dict[int, list[NftElement]] = {}
    for entry, element in made:
        if element is not None:
            by_entry.setdefault(id(entry), []).append(element)
    return MemberElements(lookup.entries, lookup.fields, family, by_entry, translated=translated)


def _take(numbers: list[int]) -> Callable[[tuple[str, ...]], Sequence[str]]:
    """Return what takes these constants out of all of a member's."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda constants: [constants[number] for number in numbers]


def _key(field: Field, value: int | Value, family: Family) -> list[str]:
    """Return a part of a key as formats: one, or one each for symbols without an order."""
    return (
        ["%s"] if isinstance(value, int) else [text.replace("%", "%%") for text in keys(field, value, family)]
    )
