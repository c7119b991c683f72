"""Faults of a whole table, which only several rules together show."""

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.read import read_ruleset

CHAINS = {
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
}


def faults(rules: str, table: str = "filter", chains: tuple[str, ...] = ("a", "b")) -> list[str]:
    head = "".join(f":{name} ACCEPT [0:0]\n" for name in CHAINS[table]) + "".join(f":{c} -\n" for c in chains)
    try:
        read_ruleset(f"*{table}\n{head}{rules}\nCOMMIT\n".encode(), name="rules")
    except ParseError as e:
        return [d.message for d in e.diagnostics]
    return []


@pytest.mark.parametrize(
    ("rules", "messages"),
    [
        ("-A INPUT -j c", ['no chain and no target is called "c"']),
        ("-A a -j INPUT", ['"INPUT" is a built-in chain; no rule can jump to it']),
        ("-A INPUT -j a\n-A a -j b\n-A b -g a", ["chains form a loop: a → b → a"]),
        ("-A a -j b\n-A b -g a", []),  # no hook leads there
        ("-A INPUT -j a\n-A FORWARD -j a\n-A a -j b", []),
    ],
)
def test_jumps(rules: str, messages: list[str]) -> None:
    assert faults(rules) == messages


def test_deep_calls_need_no_recursion() -> None:
    names = tuple(f"c{n}" for n in range(3000))
    rules = "\n".join(f"-A {a} -j {b}" for a, b in zip(("INPUT", *names), names, strict=False))
    assert faults(rules, chains=names) == []


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "-A OUTPUT -m addrtype --dst-type LOCAL --limit-iface-in",
            "--limit-iface-in is not valid in OUTPUT",
        ),
        (
            "-A INPUT -m addrtype --dst-type LOCAL --limit-iface-out",
            "--limit-iface-out is not valid in INPUT",
        ),
        ("-A OUTPUT -m policy --dir in --pol none", "policy is not valid in OUTPUT"),
        ("-A INPUT -m policy --dir out --pol none", "policy is not valid in INPUT"),
    ],
)
def test_a_match_where_a_packet_has_no_such_device(rule: str, message: str) -> None:
    assert faults(rule) == [message]
    called = rule.replace("-A OUTPUT", "-A a").replace("-A INPUT", "-A a")
    hook = "OUTPUT" if "OUTPUT" in rule else "INPUT"
    assert faults(f"-A {hook} -j a\n{called}") == [f"{message}, from which chain a is reached"]
    assert faults(called) == []  # a chain that nothing calls


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "-A INPUT -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "--clamp-mss-to-pmtu is not",
        ),
        ("-A FORWARD -p tcp -j TCPMSS --set-mss 1400", "TCPMSS needs a test in the same rule"),
        ("-A FORWARD -p tcp ! --syn -j TCPMSS --set-mss 1400", "TCPMSS needs a test in the same rule"),
    ],
)
def test_segment_sizes(rule: str, message: str) -> None:
    (fault,) = faults(rule, table="mangle")
    assert fault.startswith(message)
