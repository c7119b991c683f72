"""The flowtable in the text of a table."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate import nft
from translate.errors import InputError, UnsupportedError
from translate.nft import Offload

ESTABLISHED = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"


@pytest.mark.parametrize("level", [0, 2])
def test_a_chain_after_all_others_of_forward(level: int) -> None:
    lowered = program("filter", ESTABLISHED, "-A FORWARD -j DROP", level=level)
    plain = nft.emit(lowered)
    text = nft.offloading(plain, lowered, Offload(("eth0", "pod.1"), unchecked=True)).text
    known = {*plain.text.splitlines(), "\t}", ""}
    assert [line.strip() for line in text.splitlines() if line not in known] == [
        "flowtable established_flows {",
        "hook ingress priority filter",
        "devices = { eth0, pod.1 }",
        "counter",
        "chain offload_FORWARD {",
        'comment "established connections that the flowtable forwards"',
        "type filter hook forward priority 51; policy accept;",
        'iifname { "eth0", "pod.1" } oifname { "eth0", "pod.1" } meta l4proto { tcp, udp }'
        " ct state established flow add @established_flows",
    ]


def test_a_refusal_has_the_line_and_the_reason() -> None:
    lowered = program("mangle", "-A POSTROUTING -p tcp -j DSCP --set-dscp 10", level=2)
    with pytest.raises(UnsupportedError) as error:
        nft.offloading(nft.emit(lowered), lowered, Offload(("eth0",), unchecked=True))
    (refusal,) = error.value.refusals
    assert refusal.origin.text == "-A POSTROUTING -p tcp -j DSCP --set-dscp 10"
    assert refusal.reason == (
        "the rule changes a later packet of a connection, which a flowtable forwards unchanged"
    )


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ((), "at least one device"),
        (("",), "'' is not a device"),
        (("eth+",), "'eth\\+' is not a device"),
        (("eth0 }",), "is not a device"),
        (("a234567890123456",), "is not a device"),
        (("eth0", "eth1", "eth0"), "device eth0 is named twice"),
    ],
)
def test_devices(devices: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Offload(devices)
