"""Scripts of large rulesets."""

from __future__ import annotations

import pytest

from translate.nftlisting import listing, read_listing


def commands(*more: str) -> str:
    return "\n".join([*more, "add table ip t", *(f"add chain ip t c{n}" for n in range(6))])


def test_a_large_ruleset_is_several_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_AT_ONCE", 3)
    scripts = read_listing(commands(), name="x.nft").scripts
    assert [len(script.commands) for script in scripts] == [3, 3, 1]
    assert "".join(script.text for script in scripts).splitlines() == commands().splitlines()
    assert [origin.line for script in scripts for origin in script.origins] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("definition", ["define x = 1", "redefine x = 1", "undefine x"])
def test_variables_end_with_a_transaction_so_there_is_one(
    definition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_AT_ONCE", 3)
    (script,) = read_listing(commands(definition), name="x.nft").scripts
    assert len(script.commands) == 8
