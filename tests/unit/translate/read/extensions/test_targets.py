"""The meaning of each target, its valid places, and its faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic, ParseError
from translate.ir import (
    Accept,
    Action,
    Dnat,
    Drop,
    Family,
    Interval,
    Masquerade,
    NatPorts,
    NoTrack,
    Redirect,
    Reject,
    RejectKind,
    Return,
    Rule,
    SetMark,
    Snat,
)
from translate.read import read_ruleset

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]

FULL = 0xFFFFFFFF
HOST = Interval.point(0x0A000001)
HOSTS = Interval(0x0A000001, 0x0A000009)


@pytest.mark.parametrize(
    ("rule", "table", "expected"),
    [
        ("-j ACCEPT", "filter", Accept()),
        ("--jump DROP", "filter", Drop()),
        ("-j RETURN", "filter", Return()),
        ("-j MARK --set-mark 1", "mangle", SetMark(1, FULL)),
        ("-j MARK --set-mark 0x1/0x2", "mangle", SetMark(1, 3)),
        ("-j MARK --set-xmark 0x4000/0x0", "nat", SetMark(0x4000, 0)),
        ("-j MARK --set-xmark 5", "mangle", SetMark(5, FULL)),
        ("-j MARK --and-mark 0xff", "mangle", SetMark(0, 0xFFFFFF00)),
        ("-j MARK --or-mark 0xff", "mangle", SetMark(0xFF, 0xFF)),
        ("-j MARK --xor-mark 0xff", "mangle", SetMark(0xFF, 0)),
        ("-j REJECT", "filter", Reject(RejectKind.ICMP_PORT_UNREACHABLE)),
        ("-j REJECT --reject-with port-unreach", "filter", Reject(RejectKind.ICMP_PORT_UNREACHABLE)),
        (
            "-j REJECT --reject-with icmp-admin-prohibited",
            "filter",
            Reject(RejectKind.ICMP_ADMIN_PROHIBITED),
        ),
        ("-p tcp -j REJECT --reject-with tcp-reset", "filter", Reject(RejectKind.TCP_RESET)),
        ("-p tcp -j REJECT --reject-with tcp-rst", "filter", Reject(RejectKind.TCP_RESET)),
        ("-j NOTRACK", "raw", NoTrack()),
        ("-j CT --notrack", "raw", NoTrack()),
        ("-j DNAT --to-destination 10.0.0.1", "nat", Dnat(HOST, NatPorts())),
        (
            "-j DNAT --to-destination 10.0.0.1-10.0.0.9 --random --persistent",
            "nat",
            Dnat(HOSTS, NatPorts(random=True, persistent=True)),
        ),
        (
            "-p tcp -j DNAT --to-destination 10.0.0.1:80-90",
            "nat",
            Dnat(HOST, NatPorts(interval=Interval(80, 90))),
        ),
        ("-p udp -j DNAT --to-destination :53", "nat", Dnat(None, NatPorts(interval=Interval.point(53)))),
        (
            "-p tcp -j SNAT --to-source 10.0.0.1:1024-2048 --random-fully",
            "nat",
            Snat(HOST, NatPorts(interval=Interval(1024, 2048), fully_random=True)),
        ),
        ("-p tcp -j SNAT --to-source :80", "nat", Snat(None, NatPorts(interval=Interval.point(80)))),
        (
            "-p tcp -j DNAT --to-destination 10.0.0.1:1000-2000/ftp-data",
            "nat",
            Dnat(HOST, NatPorts(interval=Interval(1000, 2000), base=20)),
        ),
        (
            "-p tcp -j DNAT --to-destination 10.0.0.1:7-7/9",
            "nat",
            Dnat(HOST, NatPorts(interval=Interval.point(7))),
        ),
        (
            "-p tcp -j SNAT --to-source 10.0.0.1:1000-2000/9",
            "nat",
            Snat(HOST, NatPorts(interval=Interval(1000, 2000), base=0)),
        ),
        (
            "! -p icmp -j DNAT --to-destination 10.0.0.1:ftp-data",
            "nat",
            Dnat(HOST, NatPorts(interval=Interval.point(20))),
        ),
        ("-p icmp -j REDIRECT --to-ports 0x10-020", "nat", Redirect(NatPorts(interval=Interval.point(16)))),
        ("-p udp -j REDIRECT --to-ports 0", "nat", Redirect(NatPorts(interval=Interval.point(0)))),
        ("-j MASQUERADE", "nat", Masquerade(NatPorts())),
        ("-j MASQUERADE --random-fully", "nat", Masquerade(NatPorts(fully_random=True))),
        (
            "-p udp -j MASQUERADE --to-ports 5-6 --random",
            "nat",
            Masquerade(NatPorts(interval=Interval(5, 6), random=True)),
        ),
        ("-j REDIRECT", "nat", Redirect(NatPorts())),
        ("-p tcp -j REDIRECT --to-port 15001", "nat", Redirect(NatPorts(interval=Interval.point(15001)))),
    ],
)
def test_targets(read_rule: ReadRule, rule: str, table: str, expected: Action) -> None:
    assert read_rule(rule, table=table).actions == (expected,)


@pytest.mark.parametrize(
    ("rule", "table", "column", "message"),
    [
        ("-j MARK", "mangle", 4, "MARK needs one of its options"),
        ("-j MARK --set-mark 1 --or-mark 1", "mangle", 22, "MARK takes one option"),
        ("-j MARK --and-mark 1/2", "mangle", 20, '"1/2" is not a number from 0 to 0xffffffff'),
        ("-j MARK ! --set-mark 1", "mangle", 11, '"--set-mark" cannot be negated'),
        ("-j DROP", "nat", 4, "the nat table is not for filtering; iptables refuses DROP there"),
        ("-j ACCEPT --to-ports 5", "filter", 11, 'unknown option "--to-ports"'),
        ("-j other --random", "nat", 10, 'unknown option "--random"'),
        ("-j REJECT", "mangle", 4, "target REJECT is not valid in table mangle"),
        ("-j REJECT --reject-with nothing", "filter", 25, 'unknown reject type "nothing"'),
        ("-j REJECT --reject-with icmp6-no-route", "filter", 25, 'unknown reject type "icmp6-no-route"'),
        ("-j REJECT --reject-with tcp-reset", "filter", 25, 'tcp-reset needs "-p tcp" in the same rule'),
        ("-j NOTRACK", "filter", 4, "target NOTRACK is not valid in table filter"),
        ("-j DNAT", "nat", 4, 'DNAT needs the option "--to-destination"'),
        ("-j DNAT --to-destination 10.0.0.x", "nat", 26, '"10.0.0.x" is not an IPv4 address'),
        (
            "-j DNAT --to-destination 10.0.0.9-10.0.0.1",
            "nat",
            26,
            'address range "10.0.0.9-10.0.0.1" ends before it begins',
        ),
        ("-j DNAT --to-destination 10.0.0.1:80", "nat", 35, "a port needs a protocol that has ports"),
        (
            "-p udplite -j DNAT --to-destination 1.2.3.4:80",
            "nat",
            45,
            "a port needs a protocol that has ports",
        ),
        ("-j DNAT --to-destination 1.2.3.4:80 -p tcp", "nat", 34, "a port needs a protocol that has ports"),
        ("-p tcp -j DNAT --to-destination 1.2.3.4:echo-ssh", "nat", 41, 'unknown port "echo-ssh"'),
        ("-p tcp -j REDIRECT --to-ports 10-ssh", "nat", 34, '"ssh" is not a port'),
        ("-p tcp -j REDIRECT --to-ports 80:81", "nat", 33, 'unexpected ":81" after the port'),
        ("-p tcp -j REDIRECT --to-ports 10-20/5", "nat", 31, '"10-20/5" shifts ports'),
        ("-p tcp -j DNAT --to-destination 1.2.3.4:10-20/0", "nat", 47, "port 0 cannot be the base"),
        ("-p tcp -j DNAT --to-destination 1.2.3.4:9-5", "nat", 41, 'port range "9-5" ends before it begins'),
        ('-j DNAT --to-destination ""', "nat", 26, '"" names neither an address nor a port'),
        ("-j DNAT --to-destination 1.2.3.4 --random-fully", "nat", 34, 'unknown option "--random-fully"'),
        ("-j MASQUERADE --to-ports 5", "nat", 26, "a port needs a protocol that has ports"),
        ("-p tcp -j REDIRECT --to-ports x", "nat", 31, 'unknown port "x"'),
        ("-j MASQUERADE", "filter", 4, "target MASQUERADE is not valid in table filter"),
    ],
)
def test_targets_invalid(read_fault: ReadFault, rule: str, table: str, column: int, message: str) -> None:
    fault = read_fault(rule, table=table)
    assert (fault.origin.column, fault.message) == (column, message)


def test_ipv6_bindings_and_rejects(read_rule: ReadRule, read_fault: ReadFault) -> None:
    def six(rule: str, table: str) -> tuple[Action, ...]:
        return read_rule(rule, table=table, family=Family.IP6).actions

    one = (0xFD00 << 112) | 1
    port = NatPorts(interval=Interval.point(80))
    host = Interval.point(one)
    assert six("-p tcp -j DNAT --to-destination [fd00::1]:80", "nat") == (Dnat(host, port),)
    assert six("-j SNAT --to-source fd00::1-fd00::2", "nat") == (Snat(Interval(one, one + 1), NatPorts()),)
    assert six("-j REJECT", "filter") == (Reject(RejectKind.ICMP6_PORT_UNREACHABLE),)
    assert six("-j REJECT --reject-with no-route", "filter") == (Reject(RejectKind.ICMP6_NO_ROUTE),)
    fault = read_fault("-p tcp -j DNAT --to-destination [fd00::1", table="nat", family=Family.IP6)
    assert fault.message == '"[fd00::1" is not [address]:port'


@pytest.mark.parametrize(
    ("table", "rules", "message"),
    [
        (
            "nat",
            ["-A INPUT -j a", "-A a -j b", "-A b -j MASQUERADE"],
            "target MASQUERADE is not valid in INPUT, from which chain b is reached; only in POSTROUTING",
        ),
        ("nat", ["-A POSTROUTING -j REDIRECT"], "target REDIRECT is not valid in POSTROUTING"),
        (
            "nat",
            ["-A PREROUTING -g a", "-A a -j SNAT --to-source 1.2.3.4"],
            "target SNAT is not valid in PRE",
        ),
        (
            "nat",
            ["-A OUTPUT -j a", "-A a -m addrtype --dst-type LOCAL --limit-iface-in"],
            "--limit-iface-in is not valid in OUTPUT, from which chain a is reached",
        ),
        (
            "nat",
            ["-A INPUT -m addrtype --src-type LOCAL --limit-iface-out"],
            "--limit-iface-out is not valid in INPUT",
        ),
    ],
)
def test_hooks_invalid(table: str, rules: list[str], message: str) -> None:
    chains = "".join(f":{c} ACCEPT\n" for c in ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"))
    text = "\n".join([f"*{table}", f"{chains}:a -\n:b -", *rules, "COMMIT", ""])
    with pytest.raises(ParseError) as caught:
        read_ruleset(text.encode(), name="rules")
    (found,) = caught.value.diagnostics
    assert message in found.render()
    assert found.origin.line == 7 + len(rules)


def test_a_chain_that_nothing_reaches_may_hold_any_target(read_rule: ReadRule) -> None:
    assert read_rule("-j MASQUERADE", table="nat").actions == (Masquerade(NatPorts()),)
