"""The state of every table and ipset of a snapshot, without counters, comments and elements that packets add.

The texts of iptables-save and ipset save are compared line by line, so that matches and set types that are
not modelled can be compared, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from backends.model.variant import variant_of
from nfparity.watch.table_state import Collection, NftChainMeaning, TableState, read_tables
from translate.errors import InputError, MachineError
from translate.ir import TableName
from translate.jsoninput import decode

__all__ = ["states_of"]

_RULES: Final = re.compile(r"(ip6?tables)(?:-(legacy|nft))?-save")
_COUNTERS: Final = re.compile(r"^\[\d+:\d+\] ")
_WORD: Final = r'(?:"(?:[^"\\]|\\.)*"|\S+)'
_COMMENT: Final = re.compile(rf" -m comment --comment {_WORD}")
_OF_SETS: Final = re.compile(rf" (?:hashsize|initval|bucketsize|packets|bytes|comment) {_WORD}")
_OF_ELEMENTS: Final = re.compile(rf" (?:packets|bytes|timeout|comment) {_WORD}")
_OF_IPTABLES: Final = frozenset((family, table.value) for family in ("ip", "ip6") for table in TableName)
"""Tables that iptables-nft writes, which a snapshot has as rules of iptables."""


def states_of(files: Mapping[str, bytes], *, name: str) -> dict[str, TableState]:
    """Return states by name: ``iptables-nft nat``, ``nft inet calico``, ``ipset blocked``.

    ``files`` are those of a snapshot, ``name`` is for messages. Raises InputError for a file that is not
    UTF-8 or has another form, and for a snapshot without rules.
    """
    states: dict[str, TableState] = {}
    for file, data in files.items():
        if match := _RULES.fullmatch(file):
            variant = match[2] or variant_of(data).value
            states |= {
                f"{match[1]}-{variant} {table}": state
                for table, state in _of_iptables(_text(data, name, file), f"{name}/{file}").items()
            }
    if "ipset-save" in files:
        text = _text(files["ipset-save"], name, "ipset-save")
        states |= {f"ipset {ipset}": state for ipset, state in _of_ipsets(text, f"{name}/ipset-save").items()}
    if "nft.json" in files:
        written = any(state.startswith(("iptables-nft ", "ip6tables-nft ")) for state in states)
        try:
            tables = read_tables(_text(files["nft.json"], name, "nft.json"))
        except MachineError as e:
            raise InputError(f"{name}/nft.json: {e}") from e
        states |= {
            f"nft {family} {table}": state
            for (family, table), state in tables.items()
            if not (written and (family, table) in _OF_IPTABLES)
        }
    if not states:
        raise InputError(f"{name}: no rules, no ipsets and no tables in this snapshot")
    return states


def _text(data: bytes, name: str, file: str) -> str:
    return decode(data, name=f"{name}/{file}")


def _of_iptables(text: str, name: str) -> dict[str, TableState]:
    """Return the tables of an output of iptables-save; a rule is its line without counters and comment."""
    tables: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = _COUNTERS.sub("", line)
        if line.startswith("*"):
            table = line[1:]
            tables[table] = ({}, {})
        elif line.startswith(":") and table:
            chain, _, rest = line[1:].partition(" ")
            policy = rest.partition(" ")[0]
            tables[table][0][chain] = "" if policy == "-" else f"policy {policy}"
        elif line.startswith("-A ") and table:
            chain, _, rule = line[3:].partition(" ")
            tables[table][1].setdefault(chain, []).append(_COMMENT.sub("", f" {rule}").strip())
        elif line and not line.startswith(("#", "COMMIT")):
            raise InputError(f"{name}:{number}: expected a line of iptables-save")
    return {
        table: TableState(
            flags=(),
            chains={
                chain: NftChainMeaning(heads.get(chain, ""), tuple(rules.get(chain, ())))
                for chain in dict.fromkeys((*heads, *rules))
            },
            collections={},
            others={},
        )
        for table, (heads, rules) in tables.items()
    }


def _of_ipsets(text: str, name: str) -> dict[str, TableState]:
    """Return the ipsets of an output of ``ipset save``; elements that expire are left out."""
    heads: dict[str, str] = {}
    elements: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        kind, _, rest = line.partition(" ")
        ipset, _, words = rest.partition(" ")
        if kind == "create":
            heads[ipset] = _OF_SETS.sub("", f" {words}").strip()
            elements[ipset] = {}
        elif kind == "add" and ipset in heads:
            if " timeout " not in f" {heads[ipset]} ":
                key, _, options = words.partition(" ")
                elements[ipset][key] = _OF_ELEMENTS.sub("", f" {options}").strip()
        elif line:
            raise InputError(f"{name}:{number}: expected a line of ipset save")
    return {
        ipset: TableState(
            flags=(), chains={}, collections={ipset: Collection(head, elements[ipset])}, others={}
        )
        for ipset, head in heads.items()
    }
