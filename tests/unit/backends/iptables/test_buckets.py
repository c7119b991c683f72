"""The tables that must be loaded again for a new run of a flow, and their text."""

from __future__ import annotations

import pytest

from backends.iptables.buckets import hashlimit_names, tables_to_reload, with_counters

LIMIT = "-m limit --limit 1/hour --limit-burst 2"
HASHED = "-m hashlimit --hashlimit-upto 1/hour --hashlimit-name"


def table(*rules: str, name: str = "mangle") -> str:
    lines = "".join(f"-A PREROUTING {rule}\n" for rule in rules)
    return f"*{name}\n:PREROUTING ACCEPT [0:0]\n{lines}COMMIT\n"


@pytest.mark.parametrize(
    "rule",
    [
        f"{LIMIT} -j ACCEPT",
        f"{LIMIT} -m recent --set --name a",
        f"{LIMIT} -m recent --set --name a -j LOG",
        f"{LIMIT} -m connlabel --label 1 --set",
        "-m quota --quota 100 -g mine",
        "-m connlimit --connlimit-above 1 --connlimit-mask 32 --connlimit-saddr -j DROP",
    ],
)
def test_a_state_that_affects_a_packet(rule: str) -> None:
    assert tables_to_reload(table("-j ACCEPT", name="raw") + table(rule)) == ("mangle",)


@pytest.mark.parametrize("rule", [f"{LIMIT} -j LOG", f"{LIMIT} -j NFLOG", LIMIT, f"{HASHED} a -j LOG"])
def test_a_state_that_affects_no_packet(rule: str) -> None:
    assert tables_to_reload(table(rule)) == ()


def test_rules_that_share_a_state() -> None:
    text = table(f"{HASHED} a -j LOG") + table(f'{HASHED} "a" -j DROP', f"{HASHED} b -j LOG", name="filter")
    assert tables_to_reload(text) == ("mangle", "filter")
    assert list(hashlimit_names(text)) == ["a", "a", "b"]


def test_rules_are_loaded_again_as_they_were_written() -> None:
    text = table("-p udp -m udp --dport 1 -m udp --dport 2", "-j ACCEPT", name="raw") + table("-j DROP")
    saved = (
        "*raw\n:PREROUTING ACCEPT [9:9]\n"
        "[1:28] -A PREROUTING -p udp -m udp --dport 2\n[2:56] -A PREROUTING -j ACCEPT\nCOMMIT\n"
    )
    assert with_counters(text, "raw", saved) == (
        "*raw\n:PREROUTING ACCEPT [0:0]\n"
        "[1:28] -A PREROUTING -p udp -m udp --dport 1 -m udp --dport 2\n"
        "[2:56] -A PREROUTING -j ACCEPT\nCOMMIT\n"
    )
