"""The matches of the IP header and of the frame; for each, what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import Diagnostic, ParseError
from translate.ir import Action, AddTtl, Family, Field, FieldTest, Rule, SetTos, SetTtl
from translate.read import read_ruleset

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-m length --length 60", field_test(Field.LENGTH, 60)),
        ("-m length --length :100", field_test(Field.LENGTH, 0, 100)),
        ("-m length ! --length 0x10:", field_test(Field.LENGTH, 16, 65535, no=True)),
        # whatever the length: a packet of more than 65535 bytes is a jumbogram
        ("-m length --length 9:5", field_test(Field.LENGTH, 0, 0xFFFFFFFF, no=True)),
        ("-m ttl --ttl-eq 64", field_test(Field.TTL, 64)),
        ("-m ttl --ttl 0100", field_test(Field.TTL, 64)),
        ("-m ttl ! --ttl-eq 1", field_test(Field.TTL, 1, no=True)),
        ("-m ttl --ttl-lt 5", field_test(Field.TTL, 0, 4)),
        ("-m ttl --ttl-gt 5", field_test(Field.TTL, 6, 255)),
        ("-m ttl --ttl-lt 0", field_test(Field.TTL, 0, 255, no=True)),
        ("-m ttl --ttl-gt 255", field_test(Field.TTL, 0, 255, no=True)),
        ("-m dscp --dscp 0x2e", field_test(Field.TOS, 0xB8, mask=0xFC)),
        ("-m dscp ! --dscp-class af11", field_test(Field.TOS, 0x28, mask=0xFC, no=True)),
        ("-m dscp --dscp-class BE", field_test(Field.TOS, 0, mask=0xFC)),
        ("-m dscp --dscp-class cs7", field_test(Field.TOS, 0xE0, mask=0xFC)),
        ("-m dscp --dscp-class AF43", field_test(Field.TOS, 0x98, mask=0xFC)),
        ("-m tos --tos 0x10", field_test(Field.TOS, 0x10)),
        ("-m tos --tos 4/0x1c", field_test(Field.TOS, 4, mask=0x1C)),
        ("-m tos ! --tos minimize-delay", field_test(Field.TOS, 0x10, mask=0x3F, no=True)),
        ("-m mac --mac-source 02:00:00:00:02:aB", field_test(Field.ETHER_SADDR, 0x0200000002AB)),
        ("-m mac ! --mac-source 2:0:0:0:2:1", field_test(Field.ETHER_SADDR, 0x020000000201, no=True)),
        ("-m pkttype --pkt-type unicast", field_test(Field.PACKET_TYPE, 0)),
        ("-m pkttype --pkt-type Host", field_test(Field.PACKET_TYPE, 0)),
        ("-m pkttype ! --pkt-type bcast", field_test(Field.PACKET_TYPE, 1, no=True)),
        ("-m pkttype --pkt-type mcast", field_test(Field.PACKET_TYPE, 2)),
        ("-m pkttype --pkt-type otherhost", field_test(Field.PACKET_TYPE, 3)),
    ],
)
def test_meaning(read_rule: ReadRule, rule: str, expected: FieldTest) -> None:
    assert read_rule(rule).tests == (expected,)


@pytest.mark.parametrize("way", ["--hl-eq 5", "--hl 5"])
def test_the_hop_limit_is_the_ttl_of_ipv6(read_rule: ReadRule, way: str) -> None:
    assert read_rule(f"-m hl {way}", family=Family.IP6).tests == (field_test(Field.TTL, 5),)


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("-m length", 4, 'length needs the option "--length"'),
        ("-m length --length 65536", 20, '"65536" is not a number from 0 to 65535'),
        ("-m length --length 1:x", 22, '"x" is not a number from 0 to 65535'),
        ("-m length --length 1:2:3", 22, '"2:3" is not a number from 0 to 65535'),
        ("-m ttl", 4, "ttl takes one of --ttl-eq, --ttl-lt and --ttl-gt"),
        ("-m ttl --ttl-eq 256", 17, '"256" is not a number from 0 to 255'),
        ("-m ttl ! --ttl-lt 5", 10, '"--ttl-lt" cannot be negated'),
        ("-m ttl ! --ttl 5", 10, '"--ttl" cannot be negated'),
        ("-m dscp", 4, "dscp takes one of --dscp and --dscp-class"),
        ("-m dscp --dscp 64", 16, '"64" is not a number from 0 to 63'),
        ("-m dscp --dscp-class XX", 22, '"XX" is not a DSCP class'),
        ("-m tos --tos wrong", 14, '"wrong" is not a TOS'),
        ("-m tos --tos 1/256", 16, '"256" is not a number from 0 to 255'),
        ("-m pkttype --pkt-type uni", 23, '"uni" is not a packet type'),
    ],
)
def test_invalid(read_fault: ReadFault, rule: str, column: int, message: str) -> None:
    fault = read_fault(rule)
    assert (fault.origin.column, fault.message) == (column, message)


@pytest.mark.parametrize("text", ["42:01:02:03:04", "42:01:02:03:04:05:06", "2:0:0:0:2:1ff", "x:0:0:0:0:0"])
def test_no_hardware_address(read_fault: ReadFault, text: str) -> None:
    fault = read_fault(f"-m mac --mac-source {text}")
    assert fault.message == f'"{text}" is not a hardware address'


@pytest.mark.parametrize("chain", ["OUTPUT", "POSTROUTING"])
def test_only_what_comes_in_has_a_hardware_address(chain: str) -> None:
    rule = f"-A {chain} -m mac --mac-source 02:00:00:00:02:01"
    text = f"*mangle\n:{chain} ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    with pytest.raises(ParseError, match=f"match mac is not valid in {chain}; only in FORWARD, INPUT"):
        read_ruleset(text.encode(), name="rules", family=Family.IP)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-j DSCP --set-dscp 0x2e", SetTos(0xB8, 0xFC)),
        ("-j DSCP --set-dscp-class AF11", SetTos(0x28, 0xFC)),
        ("-j TOS --set-tos 0x1f", SetTos(0x1F, 0xFF)),
        ("-j TOS --set-tos 0x10/0x0f", SetTos(0x10, 0x0F)),
        ("-j TOS --set-tos Maximize-Throughput", SetTos(0x08, 0x3F)),
        ("-j TOS --and-tos 0x12", SetTos(0, 0xED)),
        ("-j TOS --or-tos 0x12", SetTos(0x12, 0x12)),
        ("-j TOS --xor-tos 0x12", SetTos(0x12, 0)),
        ("-j TTL --ttl-set 0", SetTtl(0)),
        ("-j TTL --ttl-inc 1", AddTtl(1)),
        ("-j TTL --ttl-dec 255", AddTtl(-255)),
    ],
)
def test_what_a_target_changes(read_rule: ReadRule, rule: str, expected: Action) -> None:
    assert read_rule(rule, table="mangle").actions == (expected,)


def test_the_hop_limit_is_changed_as_the_ttl_is(read_rule: ReadRule) -> None:
    rule = read_rule("-j HL --hl-dec 2", table="mangle", family=Family.IP6)
    assert rule.actions == (AddTtl(-2),)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-j DSCP", "DSCP takes one of --set-dscp and --set-dscp-class"),
        ("-j DSCP --set-dscp 64", '"64" is not a number from 0 to 63'),
        ("-j DSCP --set-dscp 1 --set-dscp-class CS0", "DSCP takes one of --set-dscp and --set-dscp-class"),
        ("-j TOS", "TOS takes one of --set-tos, --and-tos, --or-tos and --xor-tos"),
        ("-j TOS --set-tos 1 --or-tos 1", "TOS takes one of --set-tos, --and-tos, --or-tos and --xor-tos"),
        ("-j TTL", "TTL takes one of --ttl-set, --ttl-dec and --ttl-inc"),
        ("-j TTL --ttl-inc 0", "--ttl-inc needs a number from 1 to 255"),
        ("-j TTL --ttl-set 256", '"256" is not a number from 0 to 255'),
    ],
)
def test_no_change(read_fault: ReadFault, rule: str, message: str) -> None:
    assert read_fault(rule, table="mangle").message == message


def test_headers_are_changed_in_the_mangle_table_alone(read_fault: ReadFault) -> None:
    assert "TTL is not valid in table filter" in read_fault("-j TTL --ttl-set 5").message
