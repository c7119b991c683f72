"""The programs of a translation: each has a number, an entry function and a handler."""

from __future__ import annotations

import re

import pytest

from translate.bpf import PROGRAMS, emit
from translate.bpf.layout.programs import Group
from translate.ir import Family, Program

_FUNCTION = r"^(?:INLINE )?int (?:handle|nfparity)_(\w+)\([^\n]*\n\{\n(.*?)^\}"
_RUN = r"\bRUN(?:_NAT)?\(chain_([a-z]+)_"


@pytest.mark.parametrize("family", Family)
def test_every_program_has_a_handler_and_every_handler_a_program(family: Family) -> None:
    source = emit(Program(family=family, chains=())).source
    assert sorted(re.findall(r"^INLINE int handle_(\w+)\(", source, re.M)) == sorted(PROGRAMS)
    entered = re.findall(r"^int nfparity_(\w+)\(struct __sk_buff \*skb\)$", source, re.M)
    assert sorted(entered) == sorted(["ingress", "egress", *PROGRAMS])


@pytest.mark.parametrize("family", Family)
def test_programs_outside_their_group_run_no_chain(family: Family) -> None:
    """Chains of table raw, and those of all other tables, are run by the programs of their group only."""
    source = emit(Program(family=family, chains=())).source
    functions = re.findall(_FUNCTION, source, re.M | re.S)
    runs = {
        name: re.findall(_RUN, body) for name, body in functions if not re.search(r"handle_\w+\(skb", body)
    }
    assert {name for name, tables in runs.items() if "raw" in tables} == set(Group.RAW.programs)
    assert {name for name, tables in runs.items() if {*tables} - {"raw"}} == set(Group.HOOKS.programs)
    assert sum(map(len, runs.values())) == len(re.findall(_RUN, source))
    assert sorted(name for group in Group for name in group.programs) == sorted(runs)


def test_programs_are_numbered_in_the_order_in_which_they_are_loaded() -> None:
    source = emit(Program(family=Family.IP, chains=())).source
    body = source.partition("enum program {")[2].partition("}")[0]
    assert [name.lower() for name in re.findall(r"PROGRAM_(\w+),", body)] == list(PROGRAMS)
    called = set(re.findall(r"programs\.call\(skb, PROGRAM_(\w+)\)", source))
    assert {name.lower() for name in called} <= set(PROGRAMS)
