"""The random texts reach every option that is read, mostly with values that iptables accepts."""

from __future__ import annotations

import pytest

from tests.lab.random.kinds import KINDS
from tests.lab.random.texts import random_text
from translate.errors import ParseError
from translate.ir import Family
from translate.read import read_ruleset
from translate.read.extensions import MATCHES, TARGETS
from translate.read.extensions.declaration import MatchExtension, TargetExtension


def test_the_same_seed_gives_the_same_text() -> None:
    assert random_text(7) == random_text(7)
    assert random_text(7) != random_text(8)


@pytest.mark.parametrize("extension", [*MATCHES.values(), *TARGETS.values()], ids=lambda one: one.name)
def test_the_values_of_every_option_are_known(extension) -> None:
    taken = {spec.name for spec in extension.options if spec.arguments and spec.refused is None}
    assert taken == set(KINDS.get(extension.name, {}))


@pytest.mark.slow
def test_most_options_are_read_and_refused() -> None:
    read, refused = set(), set()
    for seed in range(12000):
        text = random_text(seed)
        words = {word for word in text.split() if word.startswith("--")}
        try:
            read_ruleset(text.encode(), name="text", family=Family.IP)
        except ParseError:
            refused |= words
        else:
            read |= words
    extensions: list[MatchExtension | TargetExtension] = [*MATCHES.values(), *TARGETS.values()]
    extensions = [one for one in extensions if one.family is not Family.IP6]
    known = {spec.name for one in extensions for spec in one.options if spec.refused is None}
    known -= {"--ahlen", "--ahres"}  # of IPv6, though -m ah is of both
    assert len(known - read) <= 3
    assert len(known & refused) > len(known) / 2
