"""Files of rules: the options for reading them, and their ipsets.

The members of ipsets come from a named file, or by default from the file ``ipset-save`` next to the rules, as
in a snapshot.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.files.userfiles import STDIN_NAME, read_bytes
from translate.dataclass import dataclass
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Ruleset, TableName
from translate.read import InputForm, SetForm, read_ipsets, read_ruleset, with_sets

if TYPE_CHECKING:
    from backends.model.variant import Variant

__all__ = ["AS_FOUND", "IPSETS_FILE", "InputOptions", "give_ipsets", "insist_on_tables", "read_some"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Options for reading rules; None: detect the value from the input.

    ``extract`` searches a page for rulesets; ``ruleset_number`` (from 1) selects one. ``ipsets`` is the
    file with the ipsets, ``ipset_form`` its form. ``variant`` selects the rules of a snapshot.
    """

    family: Family | None = None
    form: InputForm | None = None
    table: TableName | None = None
    extract: bool = False
    ruleset_number: int | None = None
    ipsets: str | None = None
    ipset_form: SetForm | None = None
    variant: Variant | None = None

    def words(self) -> tuple[str, ...]:
        """Return the equivalent command-line words."""
        words: list[str] = []
        named = (
            ("--family", self.family),
            ("--input", self.form),
            ("--table", self.table),
            ("--ipsets", self.ipsets),
            ("--ipset-form", self.ipset_form),
            ("--variant", self.variant),
        )
        for option, value in named:
            if value is not None:
                words += [option, value]
        if self.extract:
            words.append("--extract")
        if self.ruleset_number is not None:
            words += ["--ruleset", str(self.ruleset_number)]
        return tuple(words)


AS_FOUND = InputOptions()
"""Detect every option from the input."""

IPSETS_FILE: Final = "ipset-save"
"""The default file of ipsets, next to the rules."""


def read_some(data: bytes, *, name: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Return the ruleset in ``data``; ParseError also when it contains no table."""
    ruleset = read_ruleset(data, name=name, family=options.family, form=options.form, table=options.table)
    return insist_on_tables(ruleset, name)


def insist_on_tables(ruleset: Ruleset, name: str) -> Ruleset:
    """Return the ruleset; ParseError when it contains no table.

    An empty iptables-save output usually means that the command failed, or was not run as root.
    """
    if ruleset.is_empty:
        hint = "a table without rules reads: *filter, a line for each chain, COMMIT"
        raise ParseError((Diagnostic(Origin(name), "no rules in this text", hint),))
    return ruleset


def give_ipsets(ruleset: Ruleset, rules: Path | str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Return the ruleset with its ipsets; unchanged if there is no file of ipsets.

    ``rules`` is the path of the rules. Raises ParseError, and InputError when a named file cannot be read.
    """
    path = options.ipsets
    if path is None and str(rules) != "-" and any(ruleset.set_uses()):
        beside = Path(rules).with_name(IPSETS_FILE)
        path = str(beside) if beside.is_file() else None
    if path is None:
        return ruleset
    name = STDIN_NAME if path == "-" else path
    return with_sets(ruleset, read_ipsets(read_bytes(path), name=name, form=options.ipset_form))
