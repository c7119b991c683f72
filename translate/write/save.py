"""``iptables-save`` text from a Ruleset, in the order and the quoting of ``iptables-save``."""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal, UnsupportedError
from translate.ir import Chain, Counters, Option, Rule, Ruleset, Spelled, Table
from translate.read.spelling.scanner import quote

__all__ = ["write_save"]


_FREE_TEXT: Final = frozenset({"--comment", "--log-prefix", "--nflog-prefix"})


def write_save(ruleset: Ruleset, *, counters: bool = False) -> str:
    """Return the text that ``iptables-restore`` reads; rules with ``[p:b]`` when ``counters``.

    For a ruleset that was read from the output of iptables-save this is that output to the byte.
    Counters of built-in chains are printed as they were read, those not known as zero.
    Raises UnsupportedError that names every rule of which the input hides something.
    """
    refusals = tuple(Refusal(rule.origin, "write", "unknown", reason) for rule, reason in ruleset.unknowns())
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
    return [word for option in spelled.options for word in _option(option)]


def _option(option: Option) -> list[str]:
    words = ["!", option.name] if option.negated else [option.name]
    # Only free text goes through xtables_save_string; iptables prints every other value bare.
    save_string = option.name in _FREE_TEXT
    for argument in option.arguments:
        bare = not save_string and argument and not any(c in argument for c in ' \t"')
        words.append(argument if bare else quote(argument))
    return words


def _counters(counters: Counters | None) -> str:
    return "[0:0]" if counters is None else f"[{counters.packets}:{counters.bytes}]"
