from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from translate.nft.names import MAX_NAME, NameGiver

LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


@given(st.lists(st.text(max_size=200), max_size=20))
def test_names_are_legal_and_each_is_given_once(wanted: list[str]) -> None:
    giver = NameGiver()
    given_names = [giver.give(f"nat_{name}") for name in wanted]
    assert len(set(given_names)) == len(given_names)
    assert all(LEGAL.fullmatch(name) and len(name) <= MAX_NAME for name in given_names)


def test_an_ordinary_name_stays() -> None:
    assert NameGiver().give("nat_KUBE-SERVICES") == "nat_KUBE-SERVICES"


def test_names_that_become_the_same_get_a_number() -> None:
    giver = NameGiver()
    assert [giver.give(f"nat_a{c}b") for c in "~@%"] == ["nat_a_b", "nat_a_b_2", "nat_a_b_3"]
