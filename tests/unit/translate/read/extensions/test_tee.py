"""``-j TEE``: the gateway and the device of the copies, in the reader and in nftables."""

from __future__ import annotations

import pytest

import translate.bpf
from tests.unit.translate.helpers.rules import nft, program
from translate.errors import ParseError, UnsupportedError
from translate.ir import Duplicate, Family, parse_address
from translate.nft import emit
from translate.read import read_ruleset

GATEWAY = parse_address(Family.IP, "10.0.0.9")


@pytest.mark.parametrize(
    ("options", "action", "statement"),
    [
        ("--gateway 10.0.0.9", Duplicate(GATEWAY), "dup to 10.0.0.9"),
        ("--gateway 10.0.0.9 --oif eth0", Duplicate(GATEWAY, "eth0"), 'dup to 10.0.0.9 device "eth0"'),
    ],
)
def test_a_copy_is_one_statement(options: str, action: Duplicate, statement: str) -> None:
    rule = f"-A FORWARD -j TEE {options}"
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    assert read_ruleset(text.encode(), name="rules").tables[0].chains[0].rules[0].actions == (action,)
    assert nft("filter", rule)["filter_FORWARD"] == [statement]
    assert [note.feature for note in emit(program("filter", rule)).notes] == ["tee"] * bool(action.device)
    with pytest.raises(UnsupportedError, match="does not copy packets"):
        translate.bpf.emit(program("filter", rule))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", 'TEE needs the option "--gateway"'),
        ("--gateway 0.0.0.0", "not an address of a machine"),
        ('--gateway 10.0.0.9 --oif ""', "a device's name has 1 to 15 bytes"),
        (f"--gateway 10.0.0.9 --oif {'a' * 16}", "a device's name has 1 to 15 bytes"),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(options: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program("filter", f"-A FORWARD -j TEE {options}")


def test_a_name_that_nft_cannot_spell_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot spell the interface name"):
        nft("filter", "-A FORWARD -j TEE --gateway 10.0.0.9 --oif a*b")
