"""Rules as C: what each construct becomes, and what is refused."""

from __future__ import annotations

import re
import sys

import pytest

from translate.bpf import BACKEND, BpfOutput, emit
from translate.bpf.emit import MOST_STATEMENTS
from translate.bpf.layout.tables import ARGUMENTS
from translate.errors import UnsupportedError
from translate.ir import (
    Accept,
    Apply,
    Entry,
    Family,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    Name,
    Origin,
    Policy,
    Program,
    Recent,
    RecentMode,
    SetDirection,
    SetMark,
    Statement,
    TableName,
    qualified,
)
from translate.passes import lower
from translate.read import read_ruleset


def rules(table: str, *lines: str, level: int = 0, family: Family = Family.IP) -> BpfOutput:
    named = dict.fromkeys(line.split()[1] for line in lines)
    built_in = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}
    heads = [f":{c} {'ACCEPT' if c in built_in else '-'} [0:0]" for c in named]
    text = "\n".join((f"*{table}", *heads, *lines, "COMMIT\n"))
    return emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=level))


def rules6(table: str, *lines: str, level: int = 0) -> BpfOutput:
    return rules(table, *lines, level=level, family=Family.IP6)


def body(output: BpfOutput, chain: str) -> list[str]:
    """The lines of one chain's function, without remarks and the return at its end."""
    found = re.search(
        rf"/\* {re.escape(chain)} \*/\nINLINE int \w+\([^)]*\)\n{{\n(.*?)\n}}\n", output.chains, re.S
    )
    assert found is not None, output.chains
    lines = [line.strip() for line in found[1].splitlines()]
    return [line for line in lines if not line.startswith("/*")][:-1]


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        ("-s 10.0.0.1/32", "p->saddr == 0xa000001"),
        ("! -d 10.0.0.0/8", "!((p->daddr & 0xff000000) == 0xa000000)"),
        ("-m mark --mark 0x10/0xf0", "(p->mark & 0xf0) == 0x10"),
        ("-p tcp -m tcp --dport 80", "p->proto == 0x6 && p->has_ports && p->dport == 0x50"),
        ("-p tcp -m tcp --sport 0:99", "p->proto == 0x6 && p->has_ports && p->sport <= 0x63"),
        (
            "-p udp -m udp --dport 5:9",
            "p->proto == 0x11 && p->has_ports && (p->dport >= 0x5 && p->dport <= 0x9)",
        ),
        ("-m addrtype --dst-type LOCAL", "address_type(p->daddr, 0) == 0x2"),
        ("-m conntrack --ctstate INVALID", "p->ct_state == 0x1"),
        (
            "-m conntrack ! --ctstate RELATED,DNAT",
            "!((p->ct_state == 0x4) || (p->has_ct && (p->conn.status & 0x20) == 0x20))",
        ),
        (
            "-m statistic --mode random --probability 0.50000000000",
            "(bpf_get_prandom_u32() >> 1) < 0x40000000",
        ),
        ("-m statistic --mode nth --every 3 --packet 1", "count_up(0, 0x3) == 0x1"),
    ],
)
def test_a_test_becomes_a_condition(rule: str, condition: str) -> None:
    assert body(rules("filter", f"-A FORWARD {rule} -j DROP"), "filter/FORWARD") == [
        f"if ({condition}) {{",
        "return DROP;",
        "}",
    ]


def test_every_counting_rule_has_its_own_counter() -> None:
    rule = "-A FORWARD -m statistic --mode nth --every 2 --packet 0 -j DROP"
    output = rules("filter", rule, rule)
    assert "if (count_up(0, 0x2) == 0x0) {" in output.chains
    assert "if (count_up(1, 0x2) == 0x0) {" in output.chains
    assert 'BPF_TABLE("array", u32, struct turn, turns, 2);' in output.source


def test_an_absent_port_fails_a_negated_test_too() -> None:
    (condition, *_) = body(rules("filter", "-A FORWARD -p tcp -m tcp ! --dport 80 -j DROP"), "filter/FORWARD")
    assert condition == "if (p->proto == 0x6 && p->has_ports && !(p->dport == 0x50)) {"


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("eth0", "(p->in[0] == NAME(0x6574683000000000) && p->in[1] == NAME(0x0000000000000000))"),
        ("eth+", "((p->in[0] & NAME(0xffffff0000000000)) == NAME(0x6574680000000000))"),
        (
            "longername+",
            "(p->in[0] == NAME(0x6c6f6e6765726e61) && "
            "(p->in[1] & NAME(0xffff000000000000)) == NAME(0x6d65000000000000))",
        ),
    ],
)
def test_interface_names_are_compared_by_their_bytes(name: str, condition: str) -> None:
    lines = body(rules("filter", f"-A FORWARD -i {name} -j DROP"), "filter/FORWARD")
    assert lines[0] == f"if ({condition}) {{"


@pytest.mark.parametrize(
    ("table", "rule", "statement"),
    [
        ("filter", "-A INPUT -j REJECT --reject-with icmp-port-unreachable", "p->reject = 3;"),
        ("filter", "-A INPUT -p tcp -j REJECT --reject-with tcp-reset", "p->reject = 255;"),
        ("mangle", "-A INPUT -j MARK --set-xmark 0x4000/0xff00", "p->mark = (p->mark & ~0xff00) ^ 0x4000;"),
        ("nat", "-A POSTROUTING -j MASQUERADE", "return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE);"),
        (
            "nat",
            "-A POSTROUTING -j MASQUERADE --random-fully",
            "return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE | BIND_RANDOM);",
        ),
        (
            "nat",
            "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.2:80-90",
            "return ask_nat(p, 0xa000001, 0xa000002, 0x50, 0x5a, BIND_ADDRESS | BIND_PORTS);",
        ),
        (
            "nat",
            "-A PREROUTING -p tcp -j REDIRECT --to-ports 8080",
            "return ask_nat(p, 0, 0, 0x1f90, 0x1f90, BIND_REDIRECT | BIND_PORTS);",
        ),
    ],
)
def test_an_action_becomes_a_statement(table: str, rule: str, statement: str) -> None:
    assert statement in body(rules(table, rule), f"{table}/{rule.split()[1]}")


def test_a_jump_comes_back_and_a_goto_does_not() -> None:
    output = rules(
        "filter",
        "-A FORWARD -j first",
        "-A FORWARD -g second",
        "-A first -j RETURN",
        "-A second -j DROP",
    )
    jumped, _, gone = body(output, "filter/FORWARD")[1:]
    assert jumped == "if ((verdict = c0_filter_first(skb, p)))"
    assert gone == "return c1_filter_second(skb, p);"
    assert body(output, "filter/first") == ["return CONTINUE;"]


def test_a_policy_decides_what_the_chain_leaves_open() -> None:
    chain = LoweredChain(
        name="filter/INPUT",
        table=TableName.FILTER,
        statements=(),
        hook=Hook.INPUT,
        priority=0,
        policy=Policy.DROP,
    )
    text = emit(Program(family=Family.IP, chains=(chain,))).chains
    assert "return verdict == CONTINUE ? DROP : verdict;" in text
    assert "#define chain_filter_forward(skb, p) ACCEPT" in text
    assert "#define HAS_NAT 0" in text


def base(*statements: Statement, origin: Origin | None = None) -> LoweredChain:
    return LoweredChain(
        name=qualified(TableName.MANGLE, "FORWARD"),
        table=TableName.MANGLE,
        statements=statements,
        hook=Hook.FORWARD,
        priority=-150,
        policy=Policy.ACCEPT,
        origin=origin or Origin("rules", 1),
    )


def user(name: str, *statements: Statement) -> LoweredChain:
    return LoweredChain(name=f"mangle/{name}", table=TableName.MANGLE, statements=statements)


def program(*chains: LoweredChain) -> Program:
    return Program(family=Family.IP, chains=chains)


def test_points_go_into_a_map_with_their_numbers() -> None:
    entries = tuple(
        Entry(
            key=(Interval.point(a), Interval.point(53)),
            actions=(SetMark(a, 0xFF), Accept()),
            origin=Origin("r", a),
        )
        for a in (7, 8)
    )
    lookup = Lookup(fields=(Field.DADDR, Field.DPORT), entries=entries)
    output = emit(program(base(lookup)))
    (contents,) = output.maps
    assert contents.fields == ("ip.daddr", "l4.dport")
    assert [(e.key, e.code, e.arguments, e.origin.line) for e in contents.entries] == [
        ((7, 53), 1, (0xFF, 7), 7),
        ((8, 53), 1, (0xFF, 8), 8),
    ]
    key, value = contents.packed()[0]
    assert key == (7).to_bytes(4, "big") + (53).to_bytes(4, sys.byteorder)
    assert len(value) == 4 * (1 + ARGUMENTS)
    assert "p->mark = (p->mark & ~e->argument[0]) ^ e->argument[1];" in output.chains
    assert "if (p->has_ports) {" in output.chains


def test_intervals_and_names_become_a_ladder() -> None:
    lookup = Lookup(
        fields=(Field.IIF, Field.DADDR),
        entries=(
            Entry(key=(Name("a"), Interval.prefix(0x0A000000, 8, 32)), actions=(Accept(),)),
            Entry(key=(Name("b"), Interval(1, 6)), actions=(Accept(),)),
        ),
    )
    output = emit(program(base(lookup)))
    assert output.maps == ()
    assert "(p->daddr & 0xff000000) == 0xa000000" in output.chains
    assert "} else if (" in output.chains


def test_chain_names_that_differ_in_odd_signs_stay_apart() -> None:
    jumps = [Apply(tests=(), actions=(Jump(f"mangle/{n}"),)) for n in ("a-b", "a+b", "a*/b")]
    chains = [user(n, Apply(tests=(), actions=(SetMark(1, 1),))) for n in ("a-b", "a+b", "a*/b")]
    text = emit(program(base(*jumps), *chains)).chains
    assert len(set(re.findall(r"INLINE int (c\d+_mangle_a_+b)\(", text))) == 3
    assert "/* mangle/a* /b */" in text


def test_a_chain_that_nobody_calls_is_left_out() -> None:
    assert "nobody" not in emit(program(base(), user("nobody"))).chains


def test_what_cannot_be_carried_is_refused_rule_by_rule() -> None:
    origins = [Origin("rules", n, 1, f"rule {n}") for n in range(5)]
    tests = (
        Recent(name="x", mode=RecentMode.RCHECK, side=SetDirection.SRC, mask=0xFFFFFFFF, hitcount=2),
        Recent(name="y", mode=RecentMode.RCHECK, side=SetDirection.SRC, mask=0xFFFFFFFF, rttl=True),
    )
    statements = [
        Apply(tests=(test,), actions=(Accept(),), origin=origin)
        for test, origin in zip(tests, origins[1:], strict=False)
    ]
    with pytest.raises(UnsupportedError) as caught:
        emit(program(base(*statements)))
    assert [(r.origin.line, r.backend, r.feature) for r in caught.value.refusals] == [
        (1, BACKEND, "recent-hitcount"),
        (2, BACKEND, "recent-rttl"),
    ]


def test_what_would_be_too_large_when_expanded_is_refused() -> None:
    """Each chain calls the next one twice: twenty chains are a million."""
    mark = Apply(
        tests=(FieldTest(field=Field.L4PROTO, values=(Interval.point(6),)),), actions=(SetMark(1, 1),)
    )
    chains = [user(f"c{n}", *[Apply(tests=(), actions=(Jump(f"mangle/c{n + 1}"),))] * 2) for n in range(20)]
    first = base(Apply(tests=(), actions=(Goto("mangle/c0"),)), origin=Origin("rules", 3))
    with pytest.raises(UnsupportedError) as caught:
        emit(program(first, *chains, user("c20", mark)))
    (refusal,) = caught.value.refusals
    assert (refusal.origin.line, refusal.feature) == (3, "program-size")
    assert str(MOST_STATEMENTS) in refusal.reason


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        ("-s ::1/128", "p->saddr == 0x1"),
        (
            "! -d fd00:10::/32",
            "!((p->daddr & ADDRESS(0xffffffff00000000, 0x0)) == ADDRESS(0xfd00001000000000, 0x0))",
        ),
        ("-p icmpv6 -m icmp6 --icmpv6-type 128", "p->proto == 0x3a && p->has_icmp && p->icmp_type == 0x80"),
        ("-m addrtype --dst-type LOCAL", "address_type(p->daddr, 0) == 0x2"),
    ],
)
def test_a_test_of_ipv6_becomes_a_condition(rule: str, condition: str) -> None:
    lines = body(rules6("filter", f"-A FORWARD {rule} -j DROP"), "filter/FORWARD")
    assert lines == [f"if ({condition}) {{", "return DROP;", "}"]


@pytest.mark.parametrize(
    ("table", "rule", "statement"),
    [
        ("filter", "-A INPUT -j REJECT --reject-with icmp6-policy-fail", "p->reject = 5;"),
        (
            "nat",
            "-A PREROUTING -p tcp -j DNAT --to-destination [fd00::1]:80",
            "return ask_nat(p, ADDRESS(0xfd00000000000000, 0x1), ADDRESS(0xfd00000000000000, 0x1), "
            "0x50, 0x50, BIND_ADDRESS | BIND_PORTS);",
        ),
    ],
)
def test_an_action_of_ipv6_becomes_a_statement(table: str, rule: str, statement: str) -> None:
    assert statement in body(rules6(table, rule), f"{table}/{rule.split()[1]}")


def test_a_lookup_carries_addresses_of_ipv6_whole() -> None:
    (contents,) = (
        output := rules6(
            "nat",
            "-A PREROUTING -d fd00::a -j DNAT --to-destination fd00::1-fd00::2",
            "-A PREROUTING -d fd00::b -j DNAT --to-destination fd00::3-fd00::4",
            level=1,
        )
    ).maps
    assert "struct key_0 { struct wire k0; };" in output.chains
    assert "return ask_nat(p, ADDRESS_AT(e, 0), ADDRESS_AT(e, 4), 0, 0, BIND_ADDRESS);" in output.chains
    assert contents.packed()[0][0] == bytes.fromhex(f"fd00{0:026x}0a")
    assert contents.entries[0].arguments == (0xFD000000, 0, 0, 1, 0xFD000000, 0, 0, 2)


@pytest.mark.parametrize("level", [0, 1])
def test_an_address_type_of_ipv6_that_others_have_too_is_refused(level: int) -> None:
    with pytest.raises(UnsupportedError) as caught:
        rules6("filter", "-A INPUT -m addrtype --src-type UNICAST -j DROP", level=level)
    assert [(r.origin.line, r.feature) for r in caught.value.refusals] == [(3, "addrtype6")]


def test_no_table_of_data_stands_in_the_text() -> None:
    """BCC has no data section: a constant table would fail in the verifier, not in the compiler."""
    assert not re.search(
        r"static\s+(const\s+)?(u8|u16|u32|u64|int)\s+\w+\s*\[", rules("filter", "-A INPUT").source
    )
