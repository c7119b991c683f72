"""The nft elements of a lookup's entries, written without an object for each.

The spelling of a constant is the same in nft and iptables: ``families`` and ``blocks`` accept only addresses
in canonical form and ports as numbers. The elements of a family are therefore a format that is filled with
constants. The common properties of all elements of a map are taken from the elements of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter

from translate.condense.members import Member
from translate.condense.program import EntryBatch, FamilyEntries
from translate.condense.ruleset import CondensedRuleset
from translate.dataclass import dataclass, field
from translate.ir import Family, Field, Value
from translate.nft.comments import line_comment
from translate.nft.elements import NftElement, element_text
from translate.nft.printer.fields import keys

__all__ = ["FamilyElements", "family_elements"]


@dataclass(frozen=True, slots=True)
class _Form:
    """One element of each member: formats of its key and data, and the constants that fill them.

    Its rule is line ``offset`` of ``part``. ``target`` is the index of the constant whose address and port
    are the data.
    """

    key: str
    constants: tuple[int, ...]
    data: str | None
    target: int | None
    part: int
    offset: int

    @property
    def text(self) -> str:
        """The format of the element's text, to be filled by :meth:`filler`."""
        return f"{self.key} comment %s{'' if self.data is None else f' : {self.data}'}"

    def line(self, member: Member) -> int:
        """Return the line of the rule."""
        return member.starts[self.part] + self.offset

    def filler(self, lines: Sequence[str]) -> Callable[[Member], tuple[object, ...]]:
        """Return the function from a member to the values for :attr:`text`; ``lines`` are all lines."""
        part, offset, target, count = self.part, self.offset, self.target, len(self.constants)
        take = itemgetter(*self.constants) if count > 1 else None
        single = self.constants[0] if count == 1 else 0

        def values(member: Member) -> tuple[object, ...]:
            constants, line = member.constants, member.starts[part] + offset
            chosen: tuple[object, ...] = ()
            if take is not None:
                chosen = take(constants)
            elif count:
                chosen = (constants[single],)
            place = line_comment(line, lines[line - 1])
            return (*chosen, place) if target is None else (*chosen, place, _translated(constants[target]))

        return values

    def element(self, member: Member, ruleset: CondensedRuleset) -> NftElement:
        """Return the element of one member."""
        key = self.key % tuple([member.constants[i] for i in self.constants])
        data = self.data
        if data is not None:
            data = data % (() if self.target is None else (_translated(member.constants[self.target]),))
        return NftElement(key=key, data=data, origin=ruleset.origin(self.line(member)))


def _translated(target: str) -> str:
    """Return an address with its port as nft spells them in a map."""
    if not target.startswith("["):
        return target.replace(":", " . ")
    address, _, port = target[1:].rpartition("]:")
    return f"{address} . {port}"


@dataclass(frozen=True, slots=True)
class FamilyElements:
    """The elements of families, and ``others``, each with the line of its rule.

    An implementation of :class:`translate.nft.elements.Elements`.
    """

    batches: tuple[tuple[EntryBatch, tuple[_Form, ...]], ...]
    others: tuple[tuple[int, NftElement], ...]
    ruleset: CondensedRuleset = field(repr=False)

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.others) + sum(len(b.family.members) * len(forms) for b, forms in self.batches)

    def listed(self) -> tuple[NftElement, ...]:
        """Return the elements."""
        elements = list(self.others)
        for batch, forms in self.batches:
            for member in batch.family.members:
                elements += [
                    (member.starts[batch.entrance], form.element(member, self.ruleset)) for form in forms
                ]
        elements.sort(key=itemgetter(0))
        return tuple([element for _, element in elements])

    def texts(self) -> Iterator[str]:
        """Yield each element as text."""
        texts_by_line = [(line, element_text(element)) for line, element in self.others]
        for batch, forms in self.batches:
            entrance = batch.entrance
            pairs = [(form.text, form.filler(self.ruleset.lines)) for form in forms]
            texts_by_line += [
                (member.starts[entrance], text % values(member))
                for member in batch.family.members
                for text, values in pairs
            ]
        texts_by_line.sort(key=itemgetter(0))
        return (text for _, text in texts_by_line)


def family_elements(
    entries: FamilyEntries,
    fields: Sequence[Field],
    sample: Sequence[NftElement],
    ruleset: CondensedRuleset,
    *,
    translated: bool,
) -> FamilyElements:
    """Return all elements of a lookup, given those of the sample's entries.

    ``translated`` is true if their data are targets of DNAT.
    """
    family = ruleset.sample.family
    by_key = {element.key: element for element in sample}
    return FamilyElements(
        batches=tuple(
            (batch, tuple(_forms(batch, fields, by_key, family, translated=translated)))
            for batch in entries.batches
        ),
        others=tuple(
            (line, by_key[key])
            for line, entry in entries.others
            for key in _keys(fields, entry.key, family)
            if key in by_key
        ),
        ruleset=ruleset,
    )


def _forms(
    batch: EntryBatch,
    fields: Sequence[Field],
    by_key: Mapping[str, NftElement],
    family: Family,
    *,
    translated: bool,
) -> Iterator[_Form]:
    for recipe, example in zip(batch.recipes, batch.examples, strict=True):
        formats = _formats(fields, recipe.key, family)
        for key, text in zip(formats, _keys(fields, example.key, family), strict=True):
            if text not in by_key:
                continue  # no packet has this key, so the map has no element for it
            data = by_key[text].data
            yield _Form(
                key=key,
                constants=tuple([value for value in recipe.key if isinstance(value, int)]),
                data="%s" if translated else data and data.replace("%", "%%"),
                target=recipe.target if translated else None,
                part=recipe.part,
                offset=recipe.offset,
            )


def _keys(fields: Sequence[Field], key: Sequence[Value], family: Family) -> Iterator[str]:
    """Yield the keys of the elements of an entry: several if it has symbols of an unordered type."""
    texts = [keys(where, value, family) for where, value in zip(fields, key, strict=True)]
    return map(" . ".join, product(*texts))


def _formats(fields: Sequence[Field], key: Sequence[int | Value], family: Family) -> Iterator[str]:
    """Yield the keys of a recipe as formats with ``%s`` for each constant."""
    texts = [
        ["%s"] if isinstance(value, int) else [text.replace("%", "%%") for text in keys(where, value, family)]
        for where, value in zip(fields, key, strict=True)
    ]
    return map(" . ".join, product(*texts))
