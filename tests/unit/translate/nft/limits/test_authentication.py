from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from translate.errors import UnsupportedError
from translate.ir import Family, Program
from translate.passes import lower
from translate.read import read_ruleset


def six(*rules: str, level: int) -> Program:
    appended = "\n".join(f"-A INPUT {rule}" for rule in rules)
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{appended}\nCOMMIT\n"
    return lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("other", ["-p udp", "! -p udp", "-p tcp --dport 80", "-p 17 -m multiport --ports 1"])
def test_nothing_behind_ah_is_read_beside_it(other: str, level: int) -> None:
    program = six(f"{other} -m ah --ahspi 5 -j DROP", f"{other} -m ah --ahspi 6 -j ACCEPT", level=level)
    translate.bpf.emit(program)
    with pytest.raises(UnsupportedError) as caught:
        translate.nft.emit(program)
    assert {(one.feature, one.origin.line) for one in caught.value.refusals} == {("ah6", 3), ("ah6", 4)}


@pytest.mark.parametrize("level", [0, 2])
def test_other_tests_may_be_beside_it(level: int) -> None:
    rules = ("-s fd00::/64 -m ah --ahspi 5 -j DROP", "-p udp -j DROP", "-s fd00::1 -m ah --ahspi 6 -j DROP")
    assert "ah spi 5" in translate.nft.emit(six(*rules, level=level)).text
