"""Shared options: what they are read as, and written back as."""

from __future__ import annotations

import argparse

import pytest

from harness.corpus.formats.rulefile import AS_FOUND, InputOptions
from nfparity.cli.options import add_rules, input_options
from translate.ir import Family, TableName
from translate.read import InputForm


@pytest.mark.parametrize(
    "options",
    [
        AS_FOUND,
        InputOptions(family=Family.IP6, form=InputForm.LISTING, table=TableName.NAT),
        InputOptions(extract=True, ruleset_number=2),
        InputOptions(form=InputForm.RESTORE),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_the_words_of_input_options_are_read_as_the_same(options, named):
    parser = argparse.ArgumentParser()
    add_rules(parser, named=named)
    words = ["--rules", "r"] if named else ["r"]
    assert input_options(parser.parse_args([*words, *options.words()])) == options
