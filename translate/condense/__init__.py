"""The fast path for large rulesets: lower a sample of the rules, and extend the result to all of them.

Nearly all rules of a large cluster are alike. A dump of 10,000 services has a few dozen kinds of chains; the
chains of one kind differ in addresses, ports and the names of their own chains. The passes of -O2 turn them
into a few chains with large maps, and the services differ only in the elements of these maps. The fast path
reads and lowers some services of each kind and writes the elements of the others directly.

The entry points are three functions, which accept the plain form as well: :func:`read_large` replaces
:func:`translate.read.read_ruleset`, :func:`lower` replaces :func:`translate.passes.lower`, and
:func:`emit_nft` replaces :func:`translate.nft.emit`; :func:`whole_program` returns a Program's plain form.
The rules are :class:`translate.ir.Rules` in both forms. Callers that need every rule, such as the simulator,
get the plain form from them. No module of ``read``, ``passes``, ``nft`` or ``bpf`` imports this package.

Mechanism
---------

``skim`` scans the text. It matches the lines of each chain with one regular expression per kind of chain
(``blocks``), whose groups are the constants. ``components`` finds the chains and rules that belong together:
a member (``members``). ``families`` groups members that differ only in constants, checks the conditions
below, and chooses the members of the sample. ``ruleset`` has the families and the sample, which
``translate.read`` reads like any other text. The passes lower the sample. ``expand`` finds the constants of
each sampled member in the entries made from its rules. The results are recipes, from which ``program`` makes
the entries of all members, and ``emission`` with ``elements`` the text of their nft elements.

Why the result equals that of the plain path
--------------------------------------------

The premise about passes and emitters is that *they only test whether a constant is equal to another value, or
is in a set of values that a rule names*. Then constants may be renamed one to one before or after a pass with
the same result, if no constant is moved into or out of such a set.
``tests/unit/translate/condense/test_premise.py`` checks this for every pass of -O2, and shows that it notices
a pass that breaks the premise. Renaming the constants of one member makes it another member of its family. By
the premise, a pass therefore does the same with each member under these conditions:

1. Tests of equality have the same results for all members: the same constants are equal to each other, and
   none is equal to a value written in the rules of the family.
2. There are no tests of sets: no packet meets a prefix and a constant on the same field, in one chain or
   across a jump.
3. The order of members does not matter: two rules of a shared chain never match the same packet, so all of
   them become entries of lookups with distinct keys.
4. Nothing outside the family depends on its constants: other chains that members call do the same to every
   packet, and shared chains are reached without a test of addresses or ports.
5. The sample and the whole ruleset are on the same side of each limit on numbers of rules in a pass: the
   sample has more rules of each shared chain than these limits, which are a few dozen.

``families`` checks these conditions on the text of all members and on the sample. ``expand`` then checks that
all members of the sample were lowered to the same form. If a check fails, or if the sample is refused, the
ruleset is read and lowered in the plain way, which also reports every refusal.
``tests/unit/translate/condense/test_condense.py`` compares the results of both paths for clusters of all
kinds with random changes: equal Programs, and equal nft and tc output to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from translate.collector import collector_paused
from translate.condense.expand import expand
from translate.condense.program import CondensedProgram
from translate.condense.ruleset import CondensedRuleset, condense
from translate.errors import UnsupportedError
from translate.ir import Family, Program, Rules, TableName
from translate.passes import lower as lower_plain
from translate.read import InputForm, decoded, family_of, read_ruleset, recognise_form

if TYPE_CHECKING:
    from translate.nft import NftOutput

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
"""The smallest size in bytes of a dump that is condensed."""


@collector_paused()
def read_large(
    data: bytes,
    *,
    name: str,
    family: Family | None = None,
    form: InputForm | None = None,
    table: TableName | None = None,
) -> Rules:
    """Return the ruleset in ``data``, condensed if it is large and meets the conditions.

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

    Below level 2 every rule is lowered, because a member becomes more than elements of maps.
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
def emit_nft(program: Program | CondensedProgram) -> NftOutput:
    """Return a Program as nftables text. Raises UnsupportedError with all refusals."""
    from translate import nft  # half of the modules: not for those who only lower rules
    from translate.condense.emission import emit_condensed

    output = emit_condensed(program) if isinstance(program, CondensedProgram) else None
    return nft.emit(whole_program(program)) if output is None else output
