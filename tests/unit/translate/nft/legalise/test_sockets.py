"""``-m cgroup``: full sockets by class, and cgroups by their path; ``-m owner``: sockets of processes."""

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


OPENED, UNBOUND = "meta skuid 0-4294967295", "socket wildcard 1"


@pytest.mark.parametrize(
    ("tests", "jumped", "rules"),
    [
        ("", "", [f"{OPENED} drop", f"{UNBOUND} drop"]),
        ("-p tcp", "meta l4proto tcp ", [f"{OPENED} drop", f"{UNBOUND} drop"]),
        ("-p sctp", "meta l4proto sctp ", [f"{OPENED} drop", f"{UNBOUND} drop"]),
    ],
)
def test_a_connection_that_no_process_has_is_no_socket(tests: str, jumped: str, rules: list[str]) -> None:
    chains = nft("mangle", f"-A OUTPUT {tests} -m owner --socket-exists -j DROP")
    assert chains["mangle_OUTPUT"] == [f"{jumped}jump mangle_OUTPUT_2"]
    assert chains["mangle_OUTPUT_2"] == rules


def test_no_socket_of_a_process_or_of_the_kernel() -> None:
    chains = nft("mangle", "-A OUTPUT -m owner ! --socket-exists -j DROP")
    assert chains["mangle_OUTPUT_2"] == [f"{OPENED} return", f"{UNBOUND} return", "drop"]


def test_datagrams_always_have_a_process() -> None:
    chains = nft("mangle", "-A POSTROUTING -p udp -m owner --socket-exists -j DROP")
    assert chains["mangle_POSTROUTING"] == ["meta l4proto udp meta cgroup >= 0 drop"]
