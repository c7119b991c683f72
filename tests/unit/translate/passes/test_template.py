"""Conditions of a template, each with a packet that shows why it is needed."""

from __future__ import annotations

from fractions import Fraction

import pytest

import translate.passes.copies
import translate.passes.template
from tests.unit.translate.helpers.rules import program
from tests.unit.translate.passes.helpers.evaluate import State, distance, run
from translate.ir import (
    Apply,
    ConnectionState,
    Dnat,
    Entry,
    Family,
    Field,
    Hook,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    Nth,
    Policy,
    Program,
    Recent,
    SetMark,
    Statement,
    TableName,
    parse_address,
)
from translate.passes import verify
from translate.passes.template import template

BASE = "nat/PREROUTING"
BIAS = Fraction(2, 1 << 31)  # what an equal split may differ by
END = "DNAT --to-destination 9.9.9.9"


def service(n: int, endpoints: int = 2, chain: str = "PREROUTING", port: int = 80) -> list[str]:
    """A service at 10.96.0.n as kube-proxy writes it, but for the names."""
    key = f"-d 10.96.0.{n}/32 -p tcp -m tcp --dport {port}"
    rules = [f"-A {chain} {key} -j s{n}", f"-A s{n} ! -s 10.244.0.0/16 {key} -j MARK --or-mark 0x4000"]
    rules += [f"-A s{n} {draw(endpoints - e)}-j e{n}-{e}" for e in range(endpoints)]
    return rules + [rule for e in range(endpoints) for rule in endpoint(n, e)]


def draw(left: int) -> str:
    return "" if left == 1 else f"-m statistic --mode random --probability {1 / left:.11f} "


def endpoint(n: int, e: int) -> list[str]:
    return [
        f"-A e{n}-{e} -s 10.244.{n}.{e}/32 -j MARK --or-mark 0x4000",
        f"-A e{n}-{e} -p tcp -m tcp -j DNAT --to-destination 10.244.{n}.{e}:8080",
    ]


def services(*numbers: int, endpoints: int = 2) -> list[str]:
    return [rule for n in numbers for rule in service(n, endpoints)]


def address(text: str) -> int:
    return parse_address(Family.IP, text)


def packet(daddr: str, saddr: str = "10.244.0.9", dport: int = 80, mark: int = 0, proto: int = 6) -> State:
    return State.of(
        {
            Field.SADDR: address(saddr),
            Field.DADDR: address(daddr),
            Field.L4PROTO: proto,
            Field.FRAGMENT: 0,
            Field.SPORT: 1000,
            Field.DPORT: dport,
            Field.MARK: mark,
            Field.IIF: "eth0",
            Field.CT_STATE: int(ConnectionState.NEW),
        }
    )


def made(found: Program) -> dict[str, LoweredChain]:
    return {c.name: c for c in found.chains if " " in c.name}


def user_chains(found: Program) -> int:
    return sum(chain.hook is None for chain in found.chains)


def agrees(rules: list[str], *packets: State) -> None:
    written, lowered = program("nat", *rules), verify(program("nat", *rules, level=2))
    for sent in packets:
        assert distance(run(written, BASE, sent), run(lowered, BASE, sent)) <= BIAS


def remembered(found: Program, *packets: State) -> list[object]:
    """Return the results of packets one after the other, when lists remember the earlier ones."""
    seen: list[object] = []
    memory: tuple[tuple[str, int], ...] = ()
    for sent in packets:
        ((end, after),) = run(found, BASE, State(sent.fields, memory))
        memory = after.memory
        seen.append(end)
    return seen


# What becomes of services.


def test_services_of_one_shape_share_their_chains() -> None:
    few, many = (program("nat", *services(*range(1, n + 1)), level=2) for n in (2, 40))
    assert user_chains(few) == user_chains(many) == 3  # one for the services, and one for each place
    assert sum(len(c.statements) for c in few.chains) == sum(len(c.statements) for c in many.chains)
    agrees(
        services(1, 2, 3),
        packet("10.96.0.2"),
        packet("10.96.0.2", "10.244.2.1"),
        packet("10.96.0.2", "1.1.1.1"),
    )


# Conditions: for each, the packet that would go another way without it.


def by_mark() -> Program:
    """A lookup by mark into chains that change the mark before they ask for a constant."""

    def chain(name: str, *statements: Statement, base: bool = False) -> LoweredChain:
        if not base:
            return LoweredChain(name=name, table=TableName.NAT, statements=statements)
        hook, policy = Hook.PREROUTING, Policy.ACCEPT
        return LoweredChain(
            name=name, table=TableName.NAT, statements=statements, hook=hook, priority=-100, policy=policy
        )

    marks = Lookup(
        fields=(Field.MARK,),
        entries=tuple(Entry(key=(Interval.point(n),), actions=(Jump(f"nat/m{n}"),)) for n in (1, 2)),
    )
    own = [
        chain(
            f"nat/m{n}",
            Apply(tests=(), actions=(SetMark(8, 8),)),
            *(
                s
                for c in program("nat", *service(n)[2:]).chains
                if c.name == f"nat/e{n}-0"
                for s in c.statements[1:]
            ),
        )
        for n in (1, 2)
    ]
    return Program(family=Family.IP, chains=(chain(BASE, marks, base=True), *own))


def test_a_lookup_by_mark_is_no_dispatcher(monkeypatch: pytest.MonkeyPatch) -> None:
    written, sent = by_mark(), packet("10.96.0.1", mark=1)
    assert template(written) == written
    fields = translate.passes.template._DISPATCHING | {Field.MARK}
    monkeypatch.setattr(translate.passes.template, "_DISPATCHING", fields)
    assert run(template(written), BASE, sent) != run(written, BASE, sent)


NTH = "-m statistic --mode nth --every 2 --packet 0"


def second(found: Program, first: State, then: State) -> dict[object, Fraction]:
    """Return the result of a packet after one that a counter let through to END."""
    memory = next(after.memory for end, after in run(found, BASE, first) if isinstance(end, Dnat))
    shares: dict[object, Fraction] = {}
    for (end, _), share in run(found, BASE, State(then.fields, memory)).items():
        shares[end] = shares.get(end, Fraction(0)) + share
    return shares


@pytest.mark.parametrize("own", [True, False], ids=["a rule each", "one rule for both"])
def test_a_counter_of_a_rule_is_neither_copied_nor_merged(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j s{n}" for n in (1, 2)]
    if own:
        rules += [f"-A s{n} {NTH} -j {END}" for n in (1, 2)]
    else:
        rules += [*(f"-A s{n} -j c" for n in (1, 2)), f"-A c -d 10.96.0.0/16 {NTH} -j {END}"]
    rules += [f"-A s{n} -s 10.1.0.{n}/32 -j ACCEPT" for n in (1, 2)]
    found = program("nat", *rules, level=2)
    assert made(found) == {}
    sent = packet("10.96.0.1"), packet("10.96.0.2")
    expected = second(program("nat", *rules), *sent)
    assert second(found, *sent) == expected
    if own:  # as one rule, the second service would go on counting where the first one stands
        monkeypatch.setattr(translate.passes.copies, "SetTest", Nth)
        assert second(program("nat", *rules, level=2), *sent) != expected


def affine(n: int, name: str = "") -> list[str]:
    """A service with one endpoint and session affinity; ``name`` is its list's."""
    name = name or f"a{n}"
    return [
        f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j s{n}",
        f"-A s{n} -m recent --rcheck --seconds 600 --reap --name {name} --mask 255.255.255.255 --rsource"
        f" -j e{n}",
        f"-A s{n} -j f{n}",
        f"-A f{n} -p tcp -m recent --set --name {name} --mask 255.255.255.255 --rsource"
        f" -j DNAT --to-destination 10.244.{n}.1:80",
        f"-A e{n} -p tcp -m tcp -j DNAT --to-destination 10.244.{n}.9:80",
    ]


AFFINE = [*affine(1), *affine(2)]
CLIENT = [packet("10.96.0.1"), packet("10.96.0.2"), packet("10.96.0.1")]


def test_lists_of_one_shape_become_one_told_apart_by_the_key() -> None:
    found = verify(program("nat", *AFFINE, level=2))
    assert user_chains(found) == 3
    tests = [t for c in found.chains for s in c.statements for t in s.tests if isinstance(t, Recent)]
    assert {t.key for t in tests} == {(Field.DADDR,)}
    assert len({t.name for t in tests}) == 1
    # The second service does not know the client of the first.
    assert remembered(found, *CLIENT) == remembered(program("nat", *AFFINE), *CLIENT)


@pytest.mark.parametrize(
    ("extra", "sent"),
    [
        (
            [f"-A PREROUTING -p tcp -m tcp --dport 3000{n} -j s{n}" for n in (1, 2)],
            [packet("9.9.9.9", dport=30001), packet("10.96.0.1")],
        ),
        (
            [f"-A PREROUTING -d 10.97.0.{n}/32 -p tcp -m tcp --dport 80 -j s{n}" for n in (1, 2)],
            [packet("10.97.0.1"), packet("10.96.0.1")],
        ),
        (
            [f"-A PREROUTING -m recent --rcheck --name a1 --mask 255.255.255.255 --rsource -j {END}"],
            [packet("10.96.0.1"), packet("8.8.8.8")],
        ),
        (
            ["-A PREROUTING -s 10.244.0.9/32 -j f1"],
            [packet("8.8.8.8"), packet("10.96.0.1")],
        ),
    ],
    ids=["by address and by port", "by two addresses", "a rule elsewhere", "a call elsewhere"],
)
def test_lists_that_others_reach_stay_lists(
    extra: list[str], sent: list[State], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind the services' own rules, so that these still are one run of keys.
    heads = [rule for rule in AFFINE if rule.startswith("-A PREROUTING")]
    rules = [*heads, *extra, *(rule for rule in AFFINE if rule not in heads)]
    expected = remembered(program("nat", *rules), *sent)
    assert remembered(verify(program("nat", *rules, level=2)), *sent) == expected
    monkeypatch.setattr(translate.passes.template._Work, "_belongs_to", lambda *_: True)
    assert remembered(verify(program("nat", *rules, level=2)), *sent) != expected


def test_lists_of_one_name_for_two_services_stay_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [*affine(1, "same"), *affine(2, "same")]
    expected = remembered(program("nat", *rules), *CLIENT)
    assert remembered(verify(program("nat", *rules, level=2)), *CLIENT) == expected
    monkeypatch.setattr(translate.passes.template._Work, "_belongs_to", lambda *_: True)
    assert remembered(program("nat", *rules, level=2), *CLIENT) != expected


def test_a_key_that_is_a_range_keeps_its_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    # 10.91.0.0/24 is looked up by one field, so that its packets differ in the key, and below it they
    # are told apart by the same field.
    rules = [f"-A PREROUTING -d 10.9{n}.0.0/24 -j s{n}" for n in (1, 2)]
    rules += [
        f"-A s{n} -d 10.9{n}.0.{host}/32 -j DNAT --to-destination 10.244.{n}.{host}"
        for n in (1, 2)
        for host in range(4)
    ]
    found = program("nat", *rules, level=2)
    assert made(found) == {}
    agrees(rules, packet("10.91.0.1"), packet("10.92.0.0"))
    monkeypatch.setattr(translate.passes.template, "_jumps", ends_in_jumps)
    wrong = program("nat", *rules, level=2)
    assert run(wrong, BASE, packet("10.91.0.1")) != run(found, BASE, packet("10.91.0.1"))


def ends_in_jumps(lookup: Lookup, _: Program) -> dict[int, str]:
    """The entries of a lookup that jump, whatever their keys are."""
    ends = {index: entry.actions[-1] for index, entry in enumerate(lookup.entries)}
    return {index: end.chain for index, end in ends.items() if isinstance(end, Jump)}


def test_too_many_copies_are_none() -> None:
    # Each chain calls the next one at two places: copies would double with every step.
    rules = [f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j d{n}-0" for n in (1, 2)]
    for n in (1, 2):
        for step in range(14):
            for side in ("l", "r"):
                rules.append(f"-A d{n}-{step} -s 10.{side == 'l':d}.{step}.0/24 -j {side}{n}-{step}")
                rules.append(f"-A {side}{n}-{step} -s 10.9.{step}.{n}/32 -j {END}")
                rules.append(f"-A {side}{n}-{step} -j d{n}-{step + 1}")
        rules.append(f"-A d{n}-14 -s 10.3.3.{n}/32 -j {END}")
    assert made(program("nat", *rules, level=2)) == {}
