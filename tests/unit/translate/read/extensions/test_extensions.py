"""The meaning of each match, and its faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import (
    AnyOf,
    Family,
    Field,
    FieldTest,
    Interval,
    Nth,
    Random,
    Recent,
    RecentMode,
    Rule,
    SetDirection,
    SetTest,
    Test,
)
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_TARGETS
from translate.read.extensions.statistic import random_numerator

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]

MARK32 = 0xFFFFFFFF


def field_test(
    field: Field, *values: int | tuple[int, int], mask: int | None = None, no: bool = False
) -> FieldTest:
    intervals = tuple(Interval(*v) if isinstance(v, tuple) else Interval.point(v) for v in values)
    return FieldTest(field=field, values=intervals, mask=mask, negated=no)


NO_ENTRY = field_test(Field.CT_STATE, 1, 64)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # the header must be there, whatever its ports
        ("-p tcp -m tcp", [field_test(Field.SPORT, (0, 65535))]),
        (
            "-p tcp --sport 1024: --dport :22",
            [field_test(Field.SPORT, (1024, 65535)), field_test(Field.DPORT, (0, 22))],
        ),
        ("-p tcp ! --dport ssh", [field_test(Field.DPORT, 22, no=True)]),
        ("-p tcp --syn", [field_test(Field.TCP_FLAGS, 0x02, mask=0x17)]),
        ("-p tcp ! --syn", [field_test(Field.TCP_FLAGS, 0x02, mask=0x17, no=True)]),
        ("-p tcp --tcp-flags ALL NONE", [field_test(Field.TCP_FLAGS, 0, mask=0x3F)]),
        ("-p tcp --tcp-flags syn,RST SYN", [field_test(Field.TCP_FLAGS, 2, mask=6)]),
        ("-p tcp --tcp-flags SYN ACK", [field_test(Field.TCP_FLAGS, 0x10, mask=2)]),  # never holds, and stays
        ("-p udp --source-port 5:5", [field_test(Field.SPORT, 5)]),
        ("-p sctp --dport 7", [field_test(Field.DPORT, 7)]),
        ("-p tcp -m multiport --dports 22,80:90", [field_test(Field.DPORT, 22, (80, 90))]),
        ("-p udp -m multiport ! --source-ports 1", [field_test(Field.SPORT, 1, no=True)]),
        (
            "-p tcp -m multiport --ports 5",
            [AnyOf(tests=(field_test(Field.SPORT, 5), field_test(Field.DPORT, 5)))],
        ),
        (
            "-p tcp -m multiport ! --ports 5",
            [field_test(Field.SPORT, 5, no=True), field_test(Field.DPORT, 5, no=True)],
        ),
        ("-p icmp --icmp-type echo-request", [field_test(Field.ICMP_TYPE, 8)]),
        ("-p icmp --icmp-type 8/0", [field_test(Field.ICMP_TYPE, 8), field_test(Field.ICMP_CODE, 0)]),
        (
            "-p icmp --icmp-type port-unreachable",
            [field_test(Field.ICMP_TYPE, 3), field_test(Field.ICMP_CODE, 3)],
        ),
        (
            "-p icmp ! --icmp-type 3/3",
            [AnyOf(tests=(field_test(Field.ICMP_TYPE, 3, no=True), field_test(Field.ICMP_CODE, 3, no=True)))],
        ),
        ("-p icmp ! --icmp-type 3", [field_test(Field.ICMP_TYPE, 3, no=True)]),
        ("-p icmp --icmp-type any", [field_test(Field.ICMP_TYPE, (0, 255))]),
        ("-p icmp --icmp-type 255/7", [field_test(Field.ICMP_TYPE, (0, 255))]),
    ],
)
def test_transport(read_rule: ReadRule, rule: str, expected: list[Test]) -> None:
    assert read_rule(rule).tests[1:] == tuple(expected)


def test_a_bare_transport_match_tests_nothing_where_no_fragment_comes(read_rule: ReadRule) -> None:
    assert len(read_rule("-p tcp -m tcp", table="nat").tests) == 1
    assert len(read_rule("-p tcp -m tcp", table="raw").tests) == 2


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("-m tcp --dport 5", 4, 'tcp needs "-p tcp" in the same rule'),
        ("! -p tcp -m tcp", 13, 'tcp needs "-p tcp" in the same rule'),
        ("-p udp -m tcp", 11, 'tcp needs "-p tcp" in the same rule'),
        ("-m udp", 4, 'udp needs "-p udp" in the same rule'),
        ("-m sctp", 4, 'sctp needs "-p sctp" in the same rule'),
        ("-p tcp --dport 65536", 16, 'unknown port "65536"'),
        ("-p tcp --dport 5:x", 18, 'unknown port "x"'),
        ("-p tcp --dport 9:5", 16, 'port range "9:5" ends before it begins'),
        ("-p tcp --dport -1", 16, 'unknown port "-1"'),
        ("-p tcp --tcp-flags SYN,BAD SYN", 24, 'unknown TCP flag "BAD"'),
        ("-p tcp --tcp-flags SYN BAD", 24, 'unknown TCP flag "BAD"'),
        ("-p tcp --tcp-flags SYN", 23, '"--tcp-flags" needs a value'),
        ("-p tcp --syn --tcp-flags SYN SYN", 8, '"--syn" and "--tcp-flags" are the same test'),
        (
            "-m multiport --dports 5",
            4,
            'multiport needs "-p tcp" or "-p udp" or "-p udplite" or "-p sctp" or "-p dccp" in the same rule',
        ),
        ("-p tcp -m multiport", 11, "multiport needs --sports, --dports or --ports"),
        ("-p tcp -m multiport --dports 1 --sports 2", 32, "multiport takes one option"),
        ("-p tcp -m multiport --dports 1,,2", 32, '"" is not a port or a range'),
        ("-p tcp -m multiport --dports 1,2:", 32, '"2:" is not a port or a range'),
        ("-p tcp -m multiport --dports 1,9:5", 32, 'port range "9:5" ends where it begins, or before'),
        ("-p tcp -m multiport --dports 80:80", 30, 'port range "80:80" ends where it begins, or before'),
        ("-m multiport --dports 80 -p tcp", 4, 'multiport needs "-p" before it'),
        (
            "-p tcp -m multiport --dports 1:2,3:4,5:6,7:8,9:10,11:12,13:14,15:16",
            30,
            "16 ports; the kernel takes at most 15",
        ),
        ("-m icmp --icmp-type 8", 4, 'icmp needs "-p icmp" in the same rule'),
        ("-p icmp -m icmp", 12, 'icmp needs the option "--icmp-type"'),
        ("-p icmp --icmp-type pingpong", 21, 'unknown ICMP type "pingpong"'),
        ("-p icmp --icmp-type 256", 21, '"256" is not an ICMP type'),
        ("-p icmp --icmp-type 8/x", 23, '"x" is not an ICMP code'),
    ],
)
def test_transport_invalid(read_fault: ReadFault, rule: str, column: int, message: str) -> None:
    fault = read_fault(rule)
    assert (fault.origin.column, fault.message) == (column, message)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--ctstate NEW", [field_test(Field.CT_STATE, 8)]),
        ("! --ctstate new,INVALID", [field_test(Field.CT_STATE, 1, 8, no=True)]),
        ("--ctstate DNAT", [field_test(Field.CT_STATUS, 32, mask=32)]),
        ("! --ctstate SNAT", [AnyOf(tests=(field_test(Field.CT_STATUS, 16, mask=16),), negated=True)]),
        (
            "! --ctstate RELATED,ESTABLISHED,DNAT",
            [
                AnyOf(
                    tests=(field_test(Field.CT_STATE, 2, 4), field_test(Field.CT_STATUS, 32, mask=32)),
                    negated=True,
                )
            ],
        ),
        (
            "--ctstate UNTRACKED,SNAT,DNAT",
            [
                AnyOf(
                    tests=(
                        field_test(Field.CT_STATE, 64),
                        field_test(Field.CT_STATUS, 16, mask=16),
                        field_test(Field.CT_STATUS, 32, mask=32),
                    )
                )
            ],
        ),
        ("--ctstatus ASSURED,SEEN_REPLY", [field_test(Field.CT_STATUS, 0, mask=6, no=True)]),
        ("! --ctstatus EXPECTED", [field_test(Field.CT_STATUS, 0, mask=1)]),
        ("--ctstatus NONE", [field_test(Field.CT_STATUS, 0, mask=0, no=True)]),  # never: 0 & status
        ("--ctproto udp", [field_test(Field.CT_PROTO, 17)]),
        ("--ctexpire 5", [field_test(Field.CT_EXPIRES, 5)]),
        ("! --ctexpire 0x10:", [field_test(Field.CT_EXPIRES, (16, (1 << 32) - 1), no=True)]),
        ("--ctdir REPLY", [field_test(Field.CT_DIRECTION, 1)]),
        ("--ctorigsrc 10.0.0.0/8", [field_test(Field.CT_ORIGINAL_SADDR, (0x0A000000, 0x0AFFFFFF))]),
        ("! --ctorigdst 1.2.3.4", [field_test(Field.CT_ORIGINAL_DADDR, 0x01020304, no=True)]),
        ("--ctreplsrc 1.2.3.4", [field_test(Field.CT_REPLY_SADDR, 0x01020304)]),
        ("--ctrepldst 1.2.3.4", [field_test(Field.CT_REPLY_DADDR, 0x01020304)]),
        ("--ctorigsrcport 5", [field_test(Field.CT_ORIGINAL_SPORT, 5)]),
        ("--ctorigdstport 5:6", [field_test(Field.CT_ORIGINAL_DPORT, (5, 6))]),
        ("--ctreplsrcport 5", [field_test(Field.CT_REPLY_SPORT, 5)]),
        ("! --ctrepldstport 5", [field_test(Field.CT_REPLY_DPORT, 5, no=True)]),
        # with a state that only tracked packets have, the other options must hold ...
        ("--ctstate NEW --ctproto 6", [field_test(Field.CT_STATE, 8), field_test(Field.CT_PROTO, 6)]),
        (
            "! --ctstate INVALID,UNTRACKED --ctproto 6",
            [field_test(Field.CT_STATE, 1, 64, no=True), field_test(Field.CT_PROTO, 6)],
        ),
        # ... and a packet without an entry is decided by its state alone
        (
            "--ctproto 6 --ctstate INVALID,NEW",
            [field_test(Field.CT_STATE, 1, 8), AnyOf(tests=(NO_ENTRY, field_test(Field.CT_PROTO, 6)))],
        ),
        (
            "! --ctstate NEW ! --ctproto 6",
            [
                field_test(Field.CT_STATE, 8, no=True),
                AnyOf(tests=(NO_ENTRY, field_test(Field.CT_PROTO, 6, no=True))),
            ],
        ),
    ],
)
def test_conntrack(read_rule: ReadRule, options: str, expected: list[Test]) -> None:
    assert read_rule(f"-m conntrack {options}").tests == tuple(expected)


def test_state(read_rule: ReadRule) -> None:
    assert read_rule("-m state --state NEW,RELATED").tests == (field_test(Field.CT_STATE, 4, 8),)
    assert read_rule("-m state ! --state INVALID").tests == (field_test(Field.CT_STATE, 1, no=True),)


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("-m conntrack", 4, "conntrack needs at least one option"),
        ("-m conntrack --ctstate NEW,BROKEN", 28, 'unknown connection state "BROKEN"'),
        ("-m conntrack --ctstate NEW,", 28, 'unknown connection state ""'),
        ("-m conntrack --ctstatus DNAT", 25, 'unknown connection status "DNAT"'),
        ("-m conntrack --ctproto gopher", 24, 'unknown protocol "gopher"'),
        ("-m conntrack --ctexpire 1:2:3", 27, '"2:3" is not a number from 0 to 4294967295'),
        ("-m conntrack --ctdir LEFT", 22, 'unknown direction "LEFT"'),
        ("-m conntrack ! --ctdir REPLY", 16, '"--ctdir" cannot be negated'),
        ("-m conntrack --ctorigsrc 1.2.3.x", 26, '"1.2.3.x" is not an IPv4 address'),
        ("-m conntrack --ctreplsrcport 7:5:3", 30, '"7:5:3" is not a port or a range'),
        ("-m conntrack --ctreplsrcport 65536", 30, "there is no port 65536"),
        ("-m state --state DNAT", 18, 'unknown connection state "DNAT"'),
        ("-m state", 4, 'state needs the option "--state"'),
    ],
)
def test_conntrack_invalid(
    read_rule: ReadRule, read_fault: ReadFault, rule: str, column: int, message: str
) -> None:
    if not message:  # three parts are an address (xtables_numeric_to_ipaddr)
        assert read_rule(rule).tests == (field_test(Field.CT_ORIGINAL_SADDR, 0x01020300),)
        return
    fault = read_fault(rule)
    assert (fault.origin.column, fault.message) == (column, message)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-m mark --mark 0x4000/0x4000", field_test(Field.MARK, 0x4000, mask=0x4000)),
        ("-m mark ! --mark 7", field_test(Field.MARK, 7, no=True)),
        ("-m mark --mark 010", field_test(Field.MARK, 8)),
        ("-m mark --mark 3/1", field_test(Field.MARK, 3, mask=1)),  # never holds, and stays
        ("-m addrtype --src-type LOCAL,UNICAST", field_test(Field.FIB_SADDR_TYPE, 1, 2)),
        ("-m addrtype ! --dst-type local", field_test(Field.FIB_DADDR_TYPE, 2, no=True)),
        ("-m addrtype --dst-type LOCAL --limit-iface-in", field_test(Field.FIB_DADDR_TYPE_IIF, 2)),
        ("-m addrtype --src-type LOCAL --limit-iface-out", field_test(Field.FIB_SADDR_TYPE_OIF, 2)),
        ("-m statistic --mode random --probability 0.5", Random(numerator=1 << 30)),
        ("-m statistic --mode random ! --probability 1", Random(numerator=1 << 31, negated=True)),
        ("-m cgroup ! --cgroup 0x10", field_test(Field.SOCKET_CLASS, 16, no=True)),
        ("-m cgroup --path /", field_test(Field.SOCKET_CLASS, (0, 0xFFFFFFFF))),
        ('-m cgroup ! --path ""', field_test(Field.SOCKET_CLASS, (0, 0xFFFFFFFF), no=True)),
        ("-m policy --dir in --pol none", field_test(Field.IPSEC_IN, 0)),
        ("-m socket --nowildcard", field_test(Field.TAKER, 1)),
        ("-m socket --transparent --nowildcard", field_test(Field.TAKER_TRANSPARENT, 1)),
        ("-m policy --dir out", field_test(Field.IPSEC_OUT, 1)),
        ("-m statistic --mode nth --every 3 --packet 2", Nth(every=3, packet=2)),
        ("-m statistic --mode nth ! --every 3 --packet 0", Nth(every=3, packet=0, negated=True)),
        (
            "-m set --match-set hosts src,dst",
            SetTest(name="hosts", directions=(SetDirection.SRC, SetDirection.DST)),
        ),
        (
            "-m set ! --match-set hosts dst",
            SetTest(name="hosts", directions=(SetDirection.DST,), negated=True),
        ),
        (
            "-m recent --set",
            Recent(name="DEFAULT", mode=RecentMode.SET, side=SetDirection.SRC, mask=MARK32),
        ),
        (
            "-m recent ! --update --seconds 60 --reap --hitcount 4 --rttl --name a --rdest"
            " --mask 255.255.0.0",
            Recent(
                name="a",
                mode=RecentMode.UPDATE,
                side=SetDirection.DST,
                mask=0xFFFF0000,
                seconds=60,
                hitcount=4,
                reap=True,
                rttl=True,
                negated=True,
            ),
        ),
        ("-m recent --remove --rsource", None),
    ],
)
def test_other_matches(read_rule: ReadRule, rule: str, expected: Test | None) -> None:
    found = read_rule(rule)
    if expected is not None:
        assert found.tests == (expected,)
    else:
        assert isinstance(found.tests[0], Recent)


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("-m mark", 4, 'mark needs the option "--mark"'),
        ("-m mark --mark x", 16, '"x" is not a number from 0 to 0xffffffff'),
        ("-m mark --mark 1/0x100000000", 18, '"0x100000000" is not a number from 0 to 0xffffffff'),
        ("-m mark --mark 08", 16, '"08" is not a number from 0 to 0xffffffff'),
        ("-m addrtype", 4, "addrtype needs --src-type or --dst-type"),
        ("-m addrtype --src-type LOCAL,HOME", 30, 'unknown address type "HOME"'),
        (
            "-m addrtype --src-type LOCAL --limit-iface-in --limit-iface-out",
            4,
            "addrtype takes --limit-iface-in or --limit-iface-out, not both",
        ),
        ("-m statistic --mode often", 21, 'unknown mode "often"'),
        ("-m statistic --probability 1", 4, 'statistic needs the option "--mode"'),
        ("-m statistic --mode random", 4, 'statistic in mode random needs the option "--probability"'),
        ("-m statistic --mode random --probability 1.1", 42, '"1.1" is not a probability'),
        ("-m statistic --mode random --probability nan", 42, '"nan" is not a probability'),
        ("-m statistic --mode random --probability 1 --every 3", 44, '"--every" belongs to mode nth'),
        ("-m statistic --mode nth", 4, 'statistic in mode nth needs the option "--every"'),
        ("-m statistic --mode nth --every 0", 33, "--every must be at least 1"),
        ("-m statistic --mode nth --every 3 --packet 3", 44, "packet 3 is not below 3"),
        ("-m statistic --mode nth --probability 1", 25, '"--probability" belongs to mode random'),
        ("-m set", 4, 'set needs the option "--match-set"'),
        ("-m set --match-set hosts", 25, '"--match-set" needs a value'),
        ("-m set --match-set hosts src,up", 30, 'unknown direction "up"'),
        ("-m set --match-set hosts src,src,src,src,src,src,src", 26, "a set has at most 6 dimensions"),
        ("-m recent", 4, "recent needs one of --set, --rcheck, --update, --remove"),
        ("-m recent --set --update", 17, "recent needs one of --set, --rcheck, --update, --remove"),
        ("-m recent --set --name a/b", 24, '"a/b" cannot be the name of a list'),
        ("-m recent --set --mask x", 24, '"x" is not an IPv4 address'),
        ("-m recent --set --seconds 5", 4, "--seconds, --hitcount and --rttl cannot be used with --set"),
        ("-m recent --rcheck --seconds 0", 30, '"--seconds" must be at least 1'),
        ("-m recent --rcheck --reap", 4, '"--reap" needs "--seconds"'),
        ("-m recent --rcheck --hitcount 65536", 4, "--hitcount 65536 exceeds the kernel's limit of 65535"),
        ("-m comment", 4, 'comment needs the option "--comment"'),
        (f"-m comment --comment {'x' * 257}", 22, "a comment of 257 bytes exceeds iptables' limit of 256"),
        (f"-m comment --comment {'ü' * 129}", 22, "a comment of 258 bytes exceeds iptables' limit of 256"),
    ],
)
def test_other_matches_invalid(read_fault: ReadFault, rule: str, column: int, message: str) -> None:
    fault = read_fault(rule)
    assert (fault.origin.column, fault.message) == (column, message)


def test_comments_test_nothing_and_are_kept(read_rule: ReadRule) -> None:
    rule = read_rule(r'-m comment --comment "say \"hi\"" -m comment --comment two')
    assert rule.tests == ()
    assert rule.comment == 'say "hi"; two'


@pytest.mark.parametrize(
    ("text", "numerator"),
    [
        ("0", 0),
        ("1", 1 << 31),
        ("0.50000000000", 1 << 30),
        ("0.33333333349", 715827883),  # what iptables-save prints for kube-proxy's 0.3333333333
        ("0.33333333302", 715827882),
        ("0.25", 1 << 29),
        ("1e-10", 0),
        ("0.00000000024", 1),
        ("0.00000000047", 1),
        (".5", 1 << 30),
        ("1.0000000001", None),
        ("-0.5", None),
        ("0x1p-1", 1 << 30),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("1_0", None),
    ],
)
def test_probability_is_rounded_as_lround_does(text: str, numerator: int | None) -> None:
    assert random_numerator(text) == numerator


def test_icmp6(read_rule: ReadRule, read_fault: ReadFault) -> None:
    def six(rule: str) -> tuple[Test, ...]:
        return read_rule(rule, family=Family.IP6).tests[1:]

    assert six("-p icmpv6 --icmpv6-type echo-request") == (field_test(Field.ICMP_TYPE, 128),)
    assert six("-p ipv6-icmp -m icmp6 --icmpv6-type 1/4") == (
        field_test(Field.ICMP_TYPE, 1),
        field_test(Field.ICMP_CODE, 4),
    )
    assert six("-p 58 -m icmpv6 --icmpv6-type 255") == (field_test(Field.ICMP_TYPE, 255),)
    fault = read_fault("-p icmpv6 --icmpv6-type any", family=Family.IP6)
    assert fault.message == 'unknown ICMP type "any"'
    fault = read_fault("-m addrtype --src-type NAT", family=Family.IP6)
    assert fault.message == "IPv6 has no address type NAT"


def test_the_registries_name_extensions_by_their_name() -> None:
    for registry in (MATCHES, TARGETS):
        assert all(name == extension.name for name, extension in registry.items())
    assert not UNMODELLED_TARGETS & TARGETS.keys()
