"""A command as a translator."""

from __future__ import annotations

import pytest

from harness.shrink.translator import Translator
from translate.errors import InputError, MachineError
from translate.read import read_ruleset

TEXT = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/32 -j ACCEPT\nCOMMIT\n"
RULESET = read_ruleset(TEXT.encode(), name="rules")


def test_it_gets_the_rules_in_a_file() -> None:
    translator = Translator("cat {}")
    assert translator.name == "cat"
    assert translator.text(RULESET) == TEXT


def test_it_has_a_place_for_the_file() -> None:
    with pytest.raises(InputError, match=r"needs the word \{\}"):
        Translator("cat")


def test_a_failure_has_its_message() -> None:
    with pytest.raises(MachineError, match="No such file"):
        Translator("cat {} /nowhere").text(RULESET)
    with pytest.raises(MachineError, match="false: status 1"):
        Translator("false {}").text(RULESET)


def test_a_missing_command() -> None:
    translator = Translator("no-such-translator {}")
    assert translator.probe().reason == "no-such-translator is not installed"
    with pytest.raises(MachineError, match="is not installed"):
        translator.text(RULESET)
