"""Stems of chain names."""

from __future__ import annotations

import pytest

from harness.explain.stems import Stems, stem


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("KUBE-SVC-TCOU7JCQXEZGVUNU", "KUBE-SVC-*"),
        ("KUBE-SEP-AAAAAAAAAAAAAAAA", "KUBE-SEP-*"),
        ("KUBE-SERVICES", "KUBE-SERVICES"),
        ("KUBE-EXTERNAL-SERVICES", "KUBE-EXTERNAL-SERVICES"),
        ("cali-fw-cali1a2b3c4d5e6", "cali-fw-*"),
        ("cali-pi-_kJqfZpgUeKrtAbcD", "cali-pi-_*"),
        ("CNI-DN-0a1b2c3d4e5f6a7b8c9d0", "CNI-DN-*"),
        ("team-12-34", "team-*"),
        ("zone17", "zone*"),
        ("INPUT", "INPUT"),
        ("-", "-"),
        ("", ""),
    ],
)
def test_hashes_and_numbers_are_left_out(name: str, expected: str) -> None:
    assert stem(name) == expected


def test_names_in_short() -> None:
    names = ["KUBE-MARK-MASQ", "KUBE-SVC-TCOU7JCQXEZGVUNU", "KUBE-SVC-AAAAAAAAAAAAAAAA", "zone17"]
    assert Stems(names).text() == Stems(reversed(names)).text() == "2 KUBE-SVC-*, KUBE-MARK-MASQ, zone17"
    assert Stems(names).text(without=names[1:2]) == "KUBE-MARK-MASQ, KUBE-SVC-AAAAAAAAAAAAAAAA, zone17"
    assert not Stems(names).text(without=names)
    assert Stems(names).text(without=("zone3", "other")).endswith("zone17")
