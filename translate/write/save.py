"""``iptables-save`` text from a Ruleset, in the order and the quoting of ``iptables-save``."""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal, UnsupportedError
from translate.ir import Chain, Counters, Option, Rule, Ruleset, Spelled, Table
from translate.read.spelling.scanner import escaped, quote

__all__ = ["write_save"]


_FREE_TEXT: Final = frozenset(
    {"--comment", "--log-prefix", "--nflog-prefix", "--ulog-prefix", "--helper", "--path", "--nfacct-name"}
)
"""Values that iptables prints by xtables_save_string; all others are printed bare, or always in quotes."""

_QUOTED: Final = frozenset(
    {
        ("bpf", "--bytecode"),
        ("connlabel", "--label"),
        ("LED", "--led-trigger-id"),
        ("string", "--hex-string"),
        ("string", "--string"),
        ("u32", "--u32"),
    }
)
"""Values that iptables always prints in quotes, by extension."""


def write_save(ruleset: Ruleset, *, counters: bool = False) -> str:
    """Return the text that ``iptables-restore`` reads; rules have ``[p:b]`` if ``counters``.

    For a ruleset that was read from the output of iptables-save this is the same output to the byte. Counters
    of built-in chains are printed as they were read, or zero if unknown. Rules with extensions that are not
    modelled are written as read. Raises UnsupportedError with every rule that the input shows only in part.
    """
    refusals = tuple(
        Refusal(rule.origin, "write", unknown.feature, unknown.reason)
        for rule, unknown in ruleset.unknowns()
        if not unknown.extension
    )
    if refusals:
        raise UnsupportedError(refusals)
    lines: list[str] = []
    for table in ruleset.tables:
        _table(lines, table, counters=counters)
    lines += ruleset.epilogue
    return "".join(f"{line}\n" for line in lines)


def _table(lines: list[str], table: Table, *, counters: bool) -> None:
    lines += table.preamble
    lines.append(f"*{table.name}")
    for chain in table.chains:
        lines.append(f":{chain.name} {chain.policy or '-'} {_counters(chain.counters)}")
    for chain in table.chains:
        for rule in chain.rules:
            lines.append(_rule(chain, rule, counters=counters))
    lines.append("COMMIT")


def _rule(chain: Chain, rule: Rule, *, counters: bool) -> str:
    words = [_counters(rule.counters)] if counters else []
    words += ("-A", chain.name)
    for option in rule.base:
        words += _option(option)
    for match in rule.matches:
        words += ("-m", match.name)
        words += _options(match)
    if rule.target is not None:
        words += ("-g" if rule.goto else "-j", rule.target.name)
        words += _options(rule.target)
    return " ".join(words)


def _options(spelled: Spelled) -> list[str]:
    return [word for option in spelled.options for word in _option(option, spelled.name)]


def _option(option: Option, extension: str = "") -> list[str]:
    words = ["!", option.name] if option.negated else [option.name]
    save_string = option.name in _FREE_TEXT
    for argument in option.arguments:
        if (extension, option.name) in _QUOTED:
            words.append(f'"{escaped(argument)}"')
            continue
        bare = not save_string and argument and not any(c in argument for c in ' \t"')
        words.append(argument if bare else quote(argument))
    return words


def _counters(counters: Counters | None) -> str:
    return "[0:0]" if counters is None else f"[{counters.packets}:{counters.bytes}]"
