"""The fast path for large rulesets: lower a sample of the rules, and extend the result to all of them.

Nearly all rules of a large cluster are alike. A dump of 10,000 services has a few dozen kinds of chains; the
chains of one kind differ in addresses, ports and the names of their own chains. Behind the passes of -O2 they
are a few chains with large maps, and the services differ in the elements of these maps. The fast path reads
and lowers some services of each kind and writes the elements of the others directly.

The package is entered here, by three functions that each take the plain form as well: :func:`read_large`
stands for :func:`translate.read.read_ruleset`, :func:`lower` for :func:`translate.passes.lower`, and
:func:`emit_nft` for :func:`translate.nft.emit`; :func:`whole_program` returns a Program's plain form. The
rules are :class:`translate.ir.Rules` in both forms. Whoever needs every rule, as the simulator does, gets
the plain form from them. No module of ``read``, ``passes``, ``nft`` or ``bpf`` knows about any of this.

Mechanism
    ``skim`` goes through the text. It matches the lines of each chain with one regular expression per kind of
    chain (``blocks``), whose groups are the constants. ``components`` finds the chains and rules that belong
    together: a member (``members``). ``families`` groups members that differ in constants only, checks the
    conditions below, and chooses the members of the sample. ``ruleset`` has the sample, read by the reader of
    ``translate.read`` like any other text, and the families. The passes lower the sample. ``expand`` finds
    the constants of each shown member in the entries that its rules have become: recipes, from which
    ``program`` makes the entries of all members and ``elements`` the text of their nft elements.

Why the result is that of the plain path
    The premise about passes and emitters is that *they ask of a constant only whether it is equal to
    another value, or whether it is in a set of values that a rule names*. Then a pass commutes with
    renaming: constants that are renamed one to one before the pass, none of them into or out of such a set,
    give the result that they give when renamed behind it. ``tests/unit/translate/condense/test_premise.py``
    checks this for every pass of -O2 and shows that it notices a pass that breaks it. By the premise, a
    pass does the same with each member of a family, since renaming one member's constants makes it another
    member, if

    1. the answers to questions about equality are the same for all members: the same of their constants are
       equal, and none is equal to a value written in the rules of the family;
    2. nothing is asked about sets: no packet meets a prefix and a constant on the same field, in one chain or
       across a jump;
    3. the order of members does not matter: two rules of a shared chain never match the same packet, so that
       all of them become entries of lookups, with distinct keys;
    4. nothing outside the family depends on its constants: what members call besides their own chains does
       the same to every packet, and shared chains are reached without a test of addresses or ports;
    5. numbers of rules are on the same side of each limit that a pass has: the sample has more rules of each
       shared chain than these limits, which are a few dozen.

    ``families`` checks these conditions on the text of all members and on the sample. ``expand`` then checks
    on the members of the sample that all of them have become the same. Where a check fails the answer is
    None, and the ruleset is read and lowered in the plain way; so is one whose sample is refused, so that
    every refusal is reported. ``tests/unit/translate/condense/test_condense.py`` compares the results of both
    paths for clusters of all kinds with random changes: equal Programs, and equal nft and tc output to the
    byte.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from translate import nft
from translate.collector import collector_paused
from translate.condense.elements import family_elements
from translate.condense.expand import expand
from translate.condense.program import CondensedProgram, key_of
from translate.condense.ruleset import CondensedRuleset, condense
from translate.errors import UnsupportedError
from translate.ir import Family, Program, Rules, TableName
from translate.nft.legal import DnatTarget
from translate.nft.legalise import legalise
from translate.nft.printer import printed
from translate.passes import lower as lower_plain
from translate.read import InputForm, decoded, family_of, read_ruleset, recognise_form

__all__ = [
    "LARGE",
    "CondensedProgram",
    "CondensedRuleset",
    "condense",
    "emit_nft",
    "lower",
    "read_large",
    "whole_program",
]

LARGE: Final = 1 << 18
"""The size of a dump in bytes from which on it is condensed."""


@collector_paused()
def read_large(
    data: bytes,
    *,
    name: str,
    family: Family | None = None,
    form: InputForm | None = None,
    table: TableName | None = None,
) -> Rules:
    """Return the ruleset in ``data``, condensed if it is large and can be.

    The arguments are those of :func:`translate.read.read_ruleset`. Raises ParseError.
    """
    if len(data) >= LARGE:
        text = decoded(data, name)
        if (form or recognise_form(text)) is InputForm.SAVE:
            of = family or family_of(text, InputForm.SAVE, name=name)
            condensed = condense(text, name=name, family=of)
            if condensed is not None:
                return condensed
    return read_ruleset(data, name=name, family=family, form=form, table=table)


@collector_paused()
def lower(rules: Rules, *, level: int) -> Program | CondensedProgram:
    """Return the Program of rules at a level of :data:`translate.passes.LEVELS`.

    At the levels below 2 a member is more than elements of maps, and every rule is lowered.
    """
    if isinstance(rules, CondensedRuleset) and level == 2:
        try:
            expanded = expand(lower_plain(rules.sample, level=level), rules)
        except UnsupportedError:
            expanded = None
        if expanded is not None:
            return expanded
    return lower_plain(rules.whole(), level=level)


def whole_program(program: Program | CondensedProgram) -> Program:
    """Return a Program with every entry."""
    return program.whole() if isinstance(program, CondensedProgram) else program


@collector_paused()
def emit_nft(program: Program | CondensedProgram) -> nft.NftOutput:
    """Return a Program as nftables text. Raises UnsupportedError with all refusals."""
    output = _emitted(program) if isinstance(program, CondensedProgram) else None
    return nft.emit(whole_program(program)) if output is None else output


def _emitted(program: CondensedProgram) -> nft.NftOutput | None:
    """Return the text of a condensed Program; None where it has to be written from every entry."""
    try:
        legal = legalise(program.sample)
    except UnsupportedError:
        return None  # members are refused as well, and each of them is to be named
    table = printed(legal)
    missing = set(program.entries)
    maps = []
    for map_, legal_map in zip(table.maps, legal.maps, strict=True):
        key = None if legal_map.lookup is None else key_of(legal_map.lookup)
        entries = None if key is None else program.entries.get(key)
        if entries is not None and key is not None:
            missing.discard(key)
            elements = family_elements(
                entries,
                key[0],
                map_.elements.listed(),
                program.ruleset,
                translated=isinstance(legal_map.data, DnatTarget),
            )
            map_ = replace(map_, elements=elements)
        maps.append(map_)
    return None if missing else nft.output_of(replace(table, maps=maps), legal.notes)
