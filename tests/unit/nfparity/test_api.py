from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.api import (
    IcmpError,
    InputError,
    ParseError,
    Pause,
    Reply,
    compare,
    load,
    make_node,
    read_node,
    read_rules,
)

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RULES = """\
*nat
:PREROUTING ACCEPT [0:0]
:WEB - [0:0]
-A PREROUTING -d 10.0.0.1/32 -j WEB
-A WEB -p udp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.1.0.2:53
-A WEB -p udp -j DNAT --to-destination 10.1.0.3:53
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -d 10.1.0.9 -j REJECT --reject-with icmp-host-prohibited
-A FORWARD -d 10.1.0.2/31 -j ACCEPT
-A FORWARD -s 10.1.0.2/31 -j ACCEPT
COMMIT
"""
NODE = make_node({"eth0": "10.0.0.1/24", "cni0": ["10.1.0.1/24", "fd00::1/64"]})
PACKET = "udp 10.0.0.9:4000 > 10.0.0.1:53 in eth0"


def test_outcomes_of_one_packet() -> None:
    with load(RULES, NODE) as rules:
        sent = rules.send("udp 10.0.0.9:4000 > 10.1.0.2:53 in eth0")
        assert (sent.verdict, sent.out, sent.src, sent.dst) == (
            "forward",
            "cni0",
            "10.0.0.9:4000",
            "10.1.0.2:53",
        )
        assert sent.mark == 0
        refused = rules.send("udp 10.0.0.9:4000 > 10.1.0.9:53 in eth0")
        assert (refused.verdict, refused.reject_with) == ("reject", "icmp-host-prohibited")
        assert rules.send("icmp 10.0.0.9 > 10.1.0.2 in eth0").dst == "10.1.0.2"
        dropped = rules.send("udp 10.0.0.9:4000 > 10.1.0.7:53 in eth0")
        assert (dropped.verdict, dropped.dst, dropped.mark) == ("drop", None, None)
        assert rules.deciding_rules() == ("policy DROP of FORWARD in table filter",)
        assert rules.sent()[-1] == "udp 10.0.0.9:4000 > 10.1.0.7:53 in eth0"


def test_random_outcomes_are_a_set() -> None:
    with load(RULES, NODE) as rules:
        sent = rules.send(PACKET)
    assert sent.verdict == "forward"
    assert sent.destinations == {"10.1.0.2:53", "10.1.0.3:53"}
    with pytest.raises(
        AssertionError, match=r"simulator: udp .*several values of dst: 10\.1\.0\.2:53, 10\.1\.0\.3:53"
    ):
        _ = sent.dst


def test_an_exchange_has_a_result_for_each_packet() -> None:
    with load(RULES, NODE) as rules:
        request, answer, error = rules.exchange(PACKET, Reply(), Pause(seconds=1), IcmpError(type=3, code=1))
    assert request.verdict == answer.verdict == "forward"
    assert (answer.src, answer.dst, answer.out) == ("10.0.0.1:53", "10.0.0.9:4000", "eth0")
    assert error.out == "cni0"


def test_deciding_rules_have_their_lines() -> None:
    with load(RULES, NODE) as rules:
        assert rules.deciding_rules() == ()
        rules.send("udp 10.0.0.9:4000 > 10.1.0.9:53 in eth0")
        (rule,) = rules.deciding_rules()
    assert (rule.file, rule.line) == ("rules", 10)


def test_files() -> None:
    folder = CORPUS / "rulesets" / "kind-node"
    node = read_node(folder / "worker.json")
    with load(folder / "rules.iptables-save", node) as rules:
        sent = rules.send("udp 10.244.0.3:40000 > 10.96.0.10:53 in dns3")
    assert len(sent.destinations) == 2
    assert read_rules(str(folder / "rules.iptables-save")).tables


def test_bad_input() -> None:
    with pytest.raises(ParseError, match="node"):
        make_node({"eth0": "10.0.0.300/24"})
    with pytest.raises(ParseError, match="rules:2"):
        read_rules("*nat\n-A NOWHERE -j ACCEPT\nCOMMIT\n")
    with pytest.raises(InputError, match="unknown backend 'nft'"), load(RULES, NODE, backend="nft"):
        pass
    with pytest.raises(InputError, match="no backend to compare"):
        compare(RULES, NODE, [PACKET], backends=["simulator"])
    with load(RULES, NODE) as rules, pytest.raises(ParseError, match="expected a source address"):
        rules.send("udp here > there")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent"):
        read_rules(tmp_path / "absent.rules")
