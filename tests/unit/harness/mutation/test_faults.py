"""Faults of the constructs that a kube-proxy uses: each kind is planted, once, where it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

import translate.bpf
import translate.nft
from harness.kuberules import draw_cluster, kube_proxy_rules
from harness.mutation.arenas import ARENAS, CLUSTER, arena
from harness.mutation.bpf_faults import bpf_faults, output_of
from harness.mutation.fault import Fault
from harness.mutation.nft_faults import nft_faults
from translate.errors import InputError
from translate.ir import Family, Program
from translate.passes import lower
from translate.read import read_ruleset


def program(family: Family, level: int) -> Program:
    text = kube_proxy_rules(draw_cluster(replace(CLUSTER, family=family)))
    return lower(read_ruleset(text.encode(), name="cluster", family=family), level=level)


def changes(faults: list[Fault], operator: str) -> set[tuple[str, str]]:
    """What differs between the line before and after, for each fault of a kind."""
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


def test_bpf_faults_of_each_construct() -> None:
    output = translate.bpf.emit(program(Family.IP, 1))
    text = output.render()
    faults = list(bpf_faults(text))
    kinds = {f.operator for f in faults}
    assert {"reject-kind", "list", "affinity", "side", "code", "lost-entry", "skew"} <= kinds
    rejects = [f for f in faults if f.operator == "verdict" and "REJECT" in f.place.text]
    assert {f.after for f in rejects} == {f.place.text.replace("REJECT", "DROP") for f in rejects}
    assert output_of(text, output).maps == output.maps


def test_arenas() -> None:
    (batch,) = arena("cluster6")
    assert batch.ruleset.family is Family.IP6
    again = [f for f in batch.flows if f.id.endswith("-again")]
    assert again
    assert all(len(f.steps) == 4 for f in again)
    with pytest.raises(InputError, match="known are kind, cluster"):
        arena("nothing")
    assert set(ARENAS) == {"kind", "cluster", "cluster6", "kube-real", "kube-real6"}
