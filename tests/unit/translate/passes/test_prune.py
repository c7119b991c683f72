from __future__ import annotations

from dataclasses import replace

from tests.unit.translate.rules import program, statements
from translate.ir import Apply, Drop, Policy, Program, Return
from translate.passes.prune import prune


def names(lowered: Program) -> set[str]:
    return {chain.name for chain in lowered.chains}


def test_chains_that_nobody_reaches_go() -> None:
    found = prune(
        program("filter", "-A INPUT -j used", "-A used -j DROP", "-A canary -j below", "-A below -j DROP")
    )
    assert names(found) == {"filter/INPUT", "filter/used"}


def test_jumps_to_chains_that_do_nothing_go_with_them() -> None:
    found = prune(
        program("filter", "-A INPUT -j a", "-A a -s 10.0.0.1/32 -j b", "-A b -p tcp", "-A b -j RETURN")
    )
    assert names(found) == set()


def test_a_goto_to_an_empty_chain_is_a_return() -> None:
    found = prune(program("filter", "-A INPUT -j a", "-A a -p tcp -g b", "-A a -j DROP", "-A b -j RETURN"))
    kept = [s.actions for s in statements(found, "filter/a") if isinstance(s, Apply)]
    assert kept == [(Return(),), (Drop(),)]


def test_what_stands_behind_the_end_goes() -> None:
    found = prune(program("filter", "-A INPUT -j DROP", "-A INPUT -j late", "-A late -j ACCEPT"))
    assert names(found) == {"filter/INPUT"}
    assert len(statements(found, "filter/INPUT")) == 1


def test_a_base_chain_that_drops_stays() -> None:
    lowered = program("filter", "-A INPUT -p tcp")
    dropping = replace(
        lowered,
        chains=tuple(
            replace(c, policy=Policy.DROP) if c.name == "filter/FORWARD" else c for c in lowered.chains
        ),
    )
    assert names(prune(dropping)) == {"filter/FORWARD"}


def test_base_chains_of_nat_stay() -> None:
    assert names(prune(program("nat"))) == {
        f"nat/{c}" for c in ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING")
    }
