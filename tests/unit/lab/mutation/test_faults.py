"""Faults of the constructs that a kube-proxy uses: each kind is planted, once, where it should be."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

import translate.bpf
import translate.nft
from tests.lab.kuberules import draw_cluster, kube_proxy_rules
from tests.lab.mutation.bpf_faults import bpf_faults, output_of
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.nft_faults import MOST_ELEMENTS, nft_faults
from tests.lab.mutation.rulesets import CLUSTER, RULESETS, batches_of
from translate.errors import InputError
from translate.ir import Family, Program
from translate.passes import lower
from translate.read import read_ruleset


def program(family: Family, level: int) -> Program:
    text = kube_proxy_rules(draw_cluster(replace(CLUSTER, family=family)))
    return lower(read_ruleset(text.encode(), name="cluster", family=family), level=level)


def changes(faults: list[Fault], operator: str) -> set[tuple[str, str]]:
    """Return the differences between the line before and after, for each fault of a kind."""
    found = set()
    for fault in faults:
        if fault.operator == operator and fault.after is not None:
            before, after = fault.place.text.split(" "), fault.after.split(" ")
            pairs = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
            found.add(pairs[0])
    return found


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("level", [0, 1])
def test_nft_faults_of_each_construct(family: Family, level: int) -> None:
    text = translate.nft.emit(program(family, level)).text
    faults = list(nft_faults(text))
    assert len({f.key for f in faults}) > 400
    other = "host-unreachable" if family is Family.IP else "addr-unreachable"
    assert changes(faults, "reject-kind") == {("port-unreachable", other)}
    assert {a.split("_")[0] for a, _ in changes(faults, "list")} == {"@recent"}
    assert {("saddr", "daddr"), ("daddr", "saddr")} & changes(faults, "side")
    moved = [b for _, b in changes(faults, "address")]
    assert any("." in b if family is Family.IP else ":" in b for b in moved)
    assert changes(faults, "prefix-length")
    for fault in faults:
        assert fault.plant(text) != text


@pytest.mark.parametrize(
    ("line", "operator", "after"),
    [
        ("snat prefix to 10.9.0.0/16", "prefix", "snat to 10.9.0.0"),
        ("snat prefix to 10.9.0.0/16", "lost-nat", "accept"),
        ("snat prefix to 10.9.0.0/16", "address", "snat prefix to 10.8.0.0/16"),
        ("ct reply bytes != 5-9 drop", "direction", "ct original bytes != 5-9 drop"),
        ("ct reply bytes != 5-9 drop", "direction", "ct bytes != 5-9 drop"),
        ("ct reply bytes != 5-9 drop", "count", "ct reply packets != 5-9 drop"),
        ("ct reply bytes != 5-9 drop", "inverted-test", "ct reply bytes 5-9 drop"),
        ("ct reply bytes != 5-9 drop", "number", "ct reply bytes != 6-9 drop"),
        ("ct reply bytes != 5-9 drop", "number", "ct reply bytes != 5-8 drop"),
        ("ct reply bytes != 5-9 drop", "lost-test", "drop"),
        ("ct avgpkt 7 drop", "inverted-test", "ct avgpkt != 7 drop"),
        ("ct avgpkt 7 drop", "count", "ct packets 7 drop"),
    ],
)
def test_nft_faults_of_networks_and_counts(line: str, operator: str, after: str) -> None:
    text = f"table ip t {{\n\tchain c {{\n\t\t{line}\n\t}}\n}}\n"
    assert (operator, f"\t\t{after}") in {(fault.operator, fault.after) for fault in nft_faults(text)}


def test_the_whole_network_has_no_other_address() -> None:
    text = "table ip t {\n\tchain c {\n\t\tsnat prefix to 0.0.0.0/0\n\t}\n}\n"
    assert {fault.operator for fault in nft_faults(text)} == {
        "lost-line",
        "lost-nat",
        "prefix",
        "prefix-length",
    }


def test_nft_faults_of_what_is_data() -> None:
    """A flat translation is right only if its maps are: their faults are derived as rules' are."""
    text = translate.nft.emit(program(Family.IP, 2)).text
    faults = list(nft_faults(text))
    kinds = {kind: [f for f in faults if f.operator == kind] for kind in ("data", "lookup", "side", "target")}

    for fault in kinds["data"]:
        assert fault.after is not None
        key, data = fault.place.text.rsplit(" : ", 1)
        assert fault.after.startswith(f"{key} : ")
        assert fault.after != f"{key} : {data}"
        assert f" : {fault.after.rsplit(' : ', 1)[1]}" in text
    assert {f.place.block.rsplit("_", 1)[1] for f in kinds["data"]} == {"draw", "targets", "verdicts"}

    typeof = dict(re.findall(r"\t(?:map|set) (\S+) \{\n\t\ttypeof (.*)", text))
    assert kinds["lookup"]
    for fault in kinds["lookup"]:
        assert fault.after is not None
        before, after = (re.findall(r"@(\S+)", line)[0] for line in (fault.place.text, fault.after))
        assert before != after
        assert typeof[before] == typeof[after]

    sides = {(f.place.text, f.after) for f in kinds["side"]}
    one = next(b for b, _ in sides if "ip saddr . ip daddr . meta l4proto . th dport @" in b)
    assert (one, one.replace("ip saddr .", "ip daddr .")) in sides
    assert (one, one.replace("ip daddr .", "ip saddr .")) in sides
    assert (one, one.replace("th dport", "th sport")) in sides
    assert any(re.search(r"jump nat_KUBE-SERVICES_\w*endpoint", f.place.text) for f in kinds["target"])
    lost = {f.place.block for f in faults if f.operator == "lost-line"}
    assert set(re.findall(r"\tmap (\S+)", text)) <= lost
    ports = [f for f in faults if f.operator == "port" and " : " in f.place.text]
    assert any(f.after and f.after.split(" : ")[0] == f.place.text.split(" : ")[0] for f in ports)


@pytest.mark.parametrize("size", [MOST_ELEMENTS, MOST_ELEMENTS + 1, 10 * MOST_ELEMENTS])
def test_large_maps_get_a_spread(size: int) -> None:
    elements = "\n".join(f"\t\t\ttcp . {1000 + i}," for i in range(size))
    text = f"table ip t {{\n\tset s {{\n\t\telements = {{\n{elements}\n\t\t}}\n\t}}\n}}"
    lost = [f.place.text for f in nft_faults(text) if f.operator == "lost-line"]
    assert len(set(lost)) == MOST_ELEMENTS
    ports = [int(line.strip(" \t,").split(" ")[-1]) - 1000 for line in lost]
    assert {b - a for a, b in itertools.pairwise(ports)} <= {size // MOST_ELEMENTS, size // MOST_ELEMENTS + 1}
    assert ports[0] == 0
    assert ports[-1] >= size - 1 - size // MOST_ELEMENTS


def test_bpf_faults_of_each_construct() -> None:
    output = translate.bpf.emit(program(Family.IP, 1))
    text = output.render()
    faults = list(bpf_faults(text))
    kinds = {f.operator for f in faults}
    assert {"reject-kind", "list", "affinity", "side", "code", "lost-entry", "skew"} <= kinds
    rejects = [f for f in faults if f.operator == "verdict" and "REJECT" in f.place.text]
    assert {f.after for f in rejects} == {f.place.text.replace("REJECT", "DROP") for f in rejects}
    assert output_of(text, output).maps == output.maps


def test_rulesets() -> None:
    (batch,) = batches_of("cluster6")
    assert batch.ruleset.family is Family.IP6
    again = [f for f in batch.flows if f.id.endswith("-again")]
    assert again
    assert all(len(f.steps) == 4 for f in again)
    assert [f.id for f in batch.flows if f.id.endswith("-localhost")]
    marked = [f for f in batch.flows if f.id.endswith("-marked")]
    assert {f.first.packet.mark for f in marked} == {0x4000}
    assert all(f.first.entry is None for f in marked)
    assert any("-endpoint" in f.id for f in marked)
    with pytest.raises(InputError, match="known are kind, cluster"):
        batches_of("nothing")
    both = ("cluster", "kube-real", "kube-ipvs", "headers", "netmap", "connbytes")
    assert set(RULESETS) == {"kind", *(f"{name}{n}" for name in both for n in ("", "6"))}
