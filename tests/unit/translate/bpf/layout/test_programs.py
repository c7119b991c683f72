"""The programs of a translation: each has a number, an entry function and a handler."""

from __future__ import annotations

import re

import pytest

from translate.bpf import PROGRAMS, emit
from translate.ir import Family, Program


@pytest.mark.parametrize("family", Family)
def test_every_program_has_a_handler_and_every_handler_a_program(family: Family) -> None:
    source = emit(Program(family=family, chains=())).source
    assert sorted(re.findall(r"^INLINE int handle_(\w+)\(", source, re.M)) == sorted(PROGRAMS)
    entered = re.findall(r"^int nfparity_(\w+)\(struct __sk_buff \*skb\)$", source, re.M)
    assert entered == ["ingress", "egress", *PROGRAMS]


def test_programs_are_numbered_in_the_order_in_which_they_are_loaded() -> None:
    source = emit(Program(family=Family.IP, chains=())).source
    body = source.partition("enum program {")[2].partition("}")[0]
    assert [name.lower() for name in re.findall(r"PROGRAM_(\w+),", body)] == list(PROGRAMS)
    called = set(re.findall(r"programs\.call\(skb, PROGRAM_(\w+)\)", source))
    assert {name.lower() for name in called} <= set(PROGRAMS)
