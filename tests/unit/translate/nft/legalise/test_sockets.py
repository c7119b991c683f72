"""``-m cgroup``: full sockets by class, and cgroups by their path."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import UnsupportedError

FULL = "meta cgroup 0-4294967295 socket wildcard >= 0"


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ("--cgroup 5", ["meta cgroup 5 socket wildcard >= 0 drop"]),
        ("--path /", [f"{FULL} drop"]),
        ("--path a", [f'{FULL} socket cgroupv2 level 1 "a" drop']),
        ("--path //a.slice/b//", [f'{FULL} socket cgroupv2 level 2 "a.slice/b" drop']),
        ("! --path a/b", [f"{FULL} jump mangle_OUTPUT_2"]),
    ],
)
def test_text(options: str, rules: list[str]) -> None:
    assert nft("mangle", f"-A OUTPUT -m cgroup {options} -j DROP")["mangle_OUTPUT"] == rules


def test_a_negated_path_is_tested_in_a_chain_of_its_own() -> None:
    chains = nft("mangle", "-A OUTPUT -m cgroup ! --path a/b -j DROP")
    assert chains["mangle_OUTPUT_2"] == ['socket cgroupv2 level 2 "a/b" return', "drop"]


@pytest.mark.parametrize("path", ["a*", "a b", "../a", "a/./b"])
def test_a_path_that_nft_cannot_spell(path: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        nft("mangle", f'-A OUTPUT -m cgroup --path "{path}" -j DROP')
    assert [refusal.feature for refusal in caught.value.refusals] == ["cgroup-path"]
