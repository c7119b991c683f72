from __future__ import annotations

import pytest

from backends.nftables.emptying import only_empties_sets


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("", True),
        ("flush set ip nfparity recent_a\nflush set ip6 kube-proxy affinity-x/y/tcp/80\n", True),
        ('flush set inet t "s"\n', True),
        ("flush set ip t s\nflush chain ip t c\n", False),
        ("flush ruleset\n", False),
    ],
)
def test_commands_that_empty_sets_alone(text: str, only: bool) -> None:
    assert only_empties_sets(text) is only
