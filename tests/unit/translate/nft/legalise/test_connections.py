"""``-m connlabel`` and ``-m cluster`` as nft rules, and what nftables cannot say of them."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

TRACKED = "ct state established,related,new"
CLUSTER = "-m cluster --cluster-total-nodes {} --cluster-local-node {} --cluster-hash-seed 7"


def test_a_label_is_tested_and_given() -> None:
    rules = nft(
        "mangle",
        "-A FORWARD -m connlabel --label 5 -j DROP",
        "-A FORWARD -m connlabel --label 5 --set",
        "-A FORWARD -m connlabel ! --label 6 -j ACCEPT",
    )
    assert rules["mangle_FORWARD"] == [
        "ct label 5 drop",
        f"{TRACKED} ct label set 5",
        "jump mangle_FORWARD_2",
    ]
    assert rules["mangle_FORWARD_2"] == ["ct label 6 return", "accept"]


def test_a_share_is_a_hash_of_the_original_source() -> None:
    match = CLUSTER.format(4, 2)
    negated = match.replace("--cluster-local-node", "! --cluster-local-node")
    rules = nft("filter", f"-A FORWARD {match} -j DROP", f"-A FORWARD {negated} -j ACCEPT")
    source = "jhash ct original ip saddr mod 4 seed 0x7"
    assert rules["filter_FORWARD"] == [f"{source} {{ 1 }} drop", f"{source} {{ 0, 2, 3 }} accept"]


def test_frames_to_several_machines_become_ones_to_this_machine_first() -> None:
    rules = nft("mangle", f"-A PREROUTING -p tcp {CLUSTER.format(2, 1)} -j ACCEPT")
    frames, decides = rules["mangle_PREROUTING"]
    assert frames.startswith("meta l4proto tcp ip daddr != 224.0.0.0/4 ")
    assert frames.endswith("meta pkttype set unicast")
    assert decides == "meta l4proto tcp jhash ct original ip saddr mod 2 seed 0x7 { 0 } accept"


SPLIT = "-A PREROUTING -p udp -m u32 ! --u32 0&0xff=5 -j RETURN"


@pytest.mark.parametrize(
    "before",
    [
        (SPLIT, "-A PREROUTING"),  # the statements after a rule that is split are in a chain of their own
        ("-A PREROUTING -j own", "-A own"),
    ],
)
def test_frames_in_a_chain_that_only_prerouting_reaches(before: tuple[str, str]) -> None:
    first, start = before
    chains = nft("mangle", first, f"{start} {CLUSTER.format(2, 1)} -j ACCEPT")
    (decided,) = (rules for rules in chains.values() if any("jhash" in rule for rule in rules))
    frames, decides = decided[-2:]
    assert frames.endswith("meta pkttype set unicast")
    assert decides == "jhash ct original ip saddr mod 2 seed 0x7 { 0 } accept"


def test_frames_in_a_chain_of_two_hooks_are_refused() -> None:
    rules = ("-A PREROUTING -j own", "-A OUTPUT -j own", f"-A own {CLUSTER.format(2, 1)} -j ACCEPT")
    with pytest.raises(UnsupportedError, match="PREROUTING alone"):
        nft("mangle", *rules)


@pytest.mark.parametrize(
    ("table", "rule", "feature"),
    [
        ("filter", f"-A INPUT {CLUSTER.format(2, 1)} -j DROP", "cluster-hook"),
        ("filter", f"-A FORWARD {CLUSTER.format(1, 1)} -j DROP", "cluster-single"),
        ("mangle", f"-A PREROUTING -m limit --limit 1/s {CLUSTER.format(2, 1)}", "cluster-order"),
        ("filter", "-A FORWARD -m connlabel ! --label 5 --set -j DROP", "connlabel-negated"),
    ],
)
def test_what_nftables_cannot_say_is_refused(table: str, rule: str, feature: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        nft(table, rule)
    assert {refusal.feature for refusal in caught.value.refusals} == {feature}


def test_labels_beside_templates_and_hashes_of_ipv6_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="iptables reads fields of the template"):
        nft("raw", "-A PREROUTING -j CT --zone 1", "-A PREROUTING -m connlabel --label 5 -j DROP")
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {CLUSTER.format(2, 1)} -j DROP\nCOMMIT\n"
    with pytest.raises(UnsupportedError, match="the first 32 bits"):
        emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=0))


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ("connlabel --set", 'connlabel needs the option "--label"'),
        ("cluster --cluster-total-nodes 2 --cluster-hash-seed 7", "needs either --cluster-local-node"),
        ("cluster --cluster-total-nodes 2 --cluster-local-node 3 --cluster-hash-seed 7", "has 2 nodes"),
        ("cluster --cluster-total-nodes 33 --cluster-local-node 3 --cluster-hash-seed 7", "0 to 32"),
        ("cluster --cluster-total-nodes 2 --cluster-local-node 1", 'needs the option "--cluster-hash-seed"'),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(match: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        nft("filter", f"-A FORWARD -m {match} -j DROP")


def test_the_name_of_a_label_is_not_modelled() -> None:
    with pytest.raises(UnsupportedError, match="not modelled"):
        nft("filter", "-A FORWARD -m connlabel --label eth0-out -j DROP")
