"""The options of the rule itself, negation, option spellings, and where faults are placed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import (
    Counters,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Name,
    Option,
    Rule,
    Spelled,
)
from translate.read import read_ruleset

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


def address(field: Field, low: int, high: int, *, negated: bool = False) -> FieldTest:
    return FieldTest(field=field, values=(Interval(low, high),), negated=negated)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-s 10.1.2.3", address(Field.SADDR, 0x0A010203, 0x0A010203)),
        ("-s 10.1.2.3/32", address(Field.SADDR, 0x0A010203, 0x0A010203)),
        ("--source 10.1.2.3/16", address(Field.SADDR, 0x0A010000, 0x0A01FFFF)),
        ("--src 10.1.2.3/255.255.0.0", address(Field.SADDR, 0x0A010000, 0x0A01FFFF)),
        ("! -d 10.0.0.0/8", address(Field.DADDR, 0x0A000000, 0x0AFFFFFF, negated=True)),
        ("-d ! 10.0.0.0/8", address(Field.DADDR, 0x0A000000, 0x0AFFFFFF, negated=True)),
        ("--dst 10/8", address(Field.DADDR, 0x0A000000, 0x0AFFFFFF)),
        ("-d localhost", address(Field.DADDR, 0x7F000001, 0x7F000001)),
        ("! -s 0.0.0.0/0", address(Field.SADDR, 0, 0xFFFFFFFF, negated=True)),
        (
            "-s 10.0.0.1/255.0.255.255",
            FieldTest(field=Field.SADDR, values=(Interval.point(0x0A000001),), mask=0xFF00FFFF),
        ),
        ("-i eth0", FieldTest(field=Field.IIF, values=(Name("eth0"),))),
        ("-i eth+", FieldTest(field=Field.IIF, values=(Name("eth", wildcard=True),))),
        ("! -o eth0", FieldTest(field=Field.OIF, values=(Name("eth0"),), negated=True)),
        ("! -i +", FieldTest(field=Field.IIF, values=(Name("", wildcard=True),), negated=True)),
        ("-p tcp", FieldTest(field=Field.L4PROTO, values=(Interval.point(6),))),
        ("-p TCP", FieldTest(field=Field.L4PROTO, values=(Interval.point(6),))),
        ("-p ! 17", FieldTest(field=Field.L4PROTO, values=(Interval.point(17),), negated=True)),
        ("-f", FieldTest(field=Field.FRAGMENT, values=(Interval.point(1),))),
        ("! --fragment", FieldTest(field=Field.FRAGMENT, values=(Interval.point(1),), negated=True)),
    ],
)
def test_base_options(read_rule: ReadRule, rule: str, expected: FieldTest) -> None:
    assert read_rule(rule).tests == (expected,)


@pytest.mark.parametrize("rule", ["", "-s 0/0", "-d any/0", "-i +", "-p all", "-p 0", "-p ip", "-4", "-v"])
def test_what_every_packet_passes_is_no_test(read_rule: ReadRule, rule: str) -> None:
    assert read_rule(rule).tests == ()
    assert read_rule(rule).actions == ()


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("-s 10.0.0.256", 4, '"10.0.0.256" is not an IPv4 address'),
        ("-s 10.0.0.0/33", 13, "prefix length 33 exceeds 32"),
        ("-s 10.0.0.0/255.0.0", 13, '"255.0.0" is neither a prefix length nor a mask'),
        ("-d example.org", 4, '"example.org" is not an IPv4 address'),
        ("-d 2001:db8::1", 4, '"2001:db8::1" is not an IPv4 address'),
        ("-s 08.0.0.1", 4, '"08.0.0.1" is not an IPv4 address'),
        ("-s 10.0.0.0/08", 13, '"08" is neither a prefix length nor a mask'),
        ("-d anywhere", 4, '"anywhere" is not an IPv4 address'),
        ("-s", 3, '"-s" needs a value'),
        ("-s 1.2.3.4 -s 1.2.3.4", 12, '"-s" is given twice'),
        ("! -s 1.2.3.4,5.6.7.8", 6, "a list of addresses cannot be negated"),
        ("! -s ! 1.2.3.4", 6, "negated twice"),
        ("! ! -s 1.2.3.4", 3, "negated twice"),
        ("-s 1.2.3.4 !", 12, '"!" with nothing after it'),
        ("! -j ACCEPT", 3, '"-j" cannot be negated'),
        ("-i abcdefghijklmnop", 4, 'interface name "abcdefghijklmnop" has 16 bytes'),
        ("-o ! !", 6, 'an interface named "!" cannot be saved'),
        ('-i ""', 4, 'interface name "" has 0 bytes'),
        ("-p gopher", 4, 'unknown protocol "gopher"'),
        ("-p 256", 4, 'unknown protocol "256"'),
        ("! -p all", 6, '"! -p all" matches no packet'),
        ("-c 1 x", 6, '"x" is not a counter'),
        ("-c 1,", 4, '"" is not a counter'),
        ("-c 1 -j ACCEPT", 6, '"-c" needs packets and bytes'),
        ("-c 1,2 -c 1,2", 8, '"-c" is given twice'),
        ("--jump=ACCEPT", 1, '"--jump=ACCEPT" is not understood'),
        ("--source=1.2.3.4", 1, '"--source=1.2.3.4" is not understood'),
        ("-jACCEPT", 1, 'unknown option "-jACCEPT"'),
        ("-p tcp --re 5", 8, 'option "--re" is ambiguous'),
        ("--zero", 1, '"--zero" is not an option of a rule'),
        ("-x", 1, 'unknown option "-x"'),
        ("-s 1.2.3.4 stray", 12, 'unexpected "stray"'),
        ("-m psd", 4, 'unknown match "psd"'),
        ("-m icmp6", 4, 'match "icmp6" does not belong to IPv4'),
        ("-j ACCEPT -j DROP", 11, "a rule has one target"),
        ("-j nowhere", 4, 'no chain and no target is called "nowhere"'),
        ("-g ACCEPT", 4, '"ACCEPT" is a target; -g needs a chain'),
        ("-j INPUT", 4, '"INPUT" is a built-in chain; no rule can jump to it'),
        ("-p tcp --s 3", 8, 'option "--s" is ambiguous'),
        ("-p tcp --dport=5x", 8, 'unknown port "5x"'),
        ("-p tcp --dport=5 --sport 6x", 26, 'unknown port "6x"'),
        ("-p tcp --dport=5 -j DNAT", 21, "target DNAT is not valid in table filter"),
        ("-p tcp --dport 5 --dport 6", 18, '"--dport" is given twice'),
        ("-m mark --mark 1 -m connmark --mark 2 -m mark --mark 3", 47, '"--mark" is given twice'),
        (
            "-m recent --set -m connlabel --label 1 -m recent --set",
            43,
            "recent needs one of --set, --rcheck, --update, --remove",
        ),
        ("-p tcp --dport", 15, '"--dport" needs a value'),
        ('-m comment --comment "open', 22, "a double quote is opened and never closed"),
    ],
)
def test_base_options_invalid(read_fault: ReadFault, rule: str, column: int, message: str) -> None:
    fault = read_fault(rule)
    assert (fault.origin.column, fault.message) == (column, message)


@pytest.mark.parametrize(
    "rule",
    [
        "-p tcp -m tcp --dport 53",
        "-p tcp --dport 53",
        "--protocol 6 --match tcp --destination-port domain",
        "-p tcp --dport=53",
        "-p tcp --dpo 53",
        "-m tcp --dport 53 -p tcp",
        "-p tcp -m tcp -m comment --comment x --dport 53",
    ],
)
def test_spellings_of_one_rule(read_rule: ReadRule, rule: str) -> None:
    tcp = FieldTest(field=Field.L4PROTO, values=(Interval.point(6),))
    port = FieldTest(field=Field.DPORT, values=(Interval.point(53),))
    found = read_rule(rule)
    assert found.tests == (tcp, port)
    assert Spelled("tcp", found.matches[0].options) == found.matches[0]
    assert [(o.name, o.negated) for o in found.matches[0].options] == [("--dport", False)]


@pytest.mark.parametrize("rule", ["-p udp ! --dport 53", "-p udp --dport ! 53", "-p udp ! --dpo 53"])
def test_negation_is_kept_before_the_option(read_rule: ReadRule, rule: str) -> None:
    (_, port) = read_rule(rule).tests
    assert port == FieldTest(field=Field.DPORT, values=(Interval.point(53),), negated=True)
    assert read_rule(rule).matches == (Spelled("udp", (Option("--dport", ("53",), negated=True),)),)


def test_jump_and_goto(read_rule: ReadRule) -> None:
    jump, goto = read_rule("-j other"), read_rule("--goto other")
    assert (jump.actions, jump.target, jump.goto) == ((Jump("other"),), Spelled("other"), False)
    assert (goto.actions, goto.target, goto.goto) == ((Goto("other"),), Spelled("other"), True)


def test_counters_of_a_rule(read_rule: ReadRule) -> None:
    assert read_rule("-c 3 180 -j ACCEPT").counters == Counters(3, 180)
    assert read_rule("-j ACCEPT").counters is None


def test_a_list_of_addresses_is_several_rules() -> None:
    both = "-A a -s 1.0.0.1,1.0.0.2 -d 2.0.0.1,2.0.0.2 -p tcp"
    text = f"*filter\n:a - [0:0]\n{both}\n-I a -s 3.0.0.1,3.0.0.2\nCOMMIT\n"
    rules = read_ruleset(text.encode(), name="rules").tables[0].chains[0].rules
    assert [tuple(o.arguments[0] for o in rule.base) for rule in rules] == [
        ("3.0.0.2",),
        ("3.0.0.1",),
        ("1.0.0.1", "2.0.0.1", "tcp"),
        ("1.0.0.1", "2.0.0.2", "tcp"),
        ("1.0.0.2", "2.0.0.1", "tcp"),
        ("1.0.0.2", "2.0.0.2", "tcp"),
    ]


def test_ipv6(read_rule: ReadRule, read_fault: ReadFault) -> None:
    rule = read_rule("-s fd00::/8 -d fd00::1/ffff::ffff", family=Family.IP6)
    assert rule.tests == (
        address(Field.SADDR, 0xFD << 120, (0xFE << 120) - 1),
        FieldTest(
            field=Field.DADDR,
            values=(Interval.point((0xFD00 << 112) | 1),),
            mask=(0xFFFF << 112) | 0xFFFF,
        ),
    )
    assert read_fault("-f", family=Family.IP6).message == "-f is for IPv4 only"
    fault = read_fault("-s 10.0.0.1", family=Family.IP6)
    assert fault.hint == "is the file for IPv4?"


def test_interfaces_a_hook_does_not_have() -> None:
    for chain, option in (("INPUT", "-o"), ("OUTPUT", "-i")):
        text = f"*filter\n:{chain} ACCEPT [0:0]\n-A {chain} {option} eth0\nCOMMIT\n"
        with pytest.raises(Exception, match=rf"^rules:3:\d+: {option} cannot be used in {chain}"):
            read_ruleset(text.encode(), name="rules")
