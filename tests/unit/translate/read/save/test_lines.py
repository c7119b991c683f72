"""The tables of lines: from ``*name`` to ``COMMIT``, and whatever characters a comment holds."""

from __future__ import annotations

from translate.read.save import lines_by_table


def test_lines_belong_to_their_table() -> None:
    rule = '-A A -m comment --comment "*raw\rCOMMIT"'
    text = f"# head\n*nat\n:A - [0:0]\nCOMMIT\n# between\n*filter\n{rule}\n"
    assert list(lines_by_table(text)) == [
        ("", "# head"),
        ("nat", "*nat"),
        ("nat", ":A - [0:0]"),
        ("nat", "COMMIT"),
        ("", "# between"),
        ("filter", "*filter"),
        ("filter", rule),
        ("filter", ""),
    ]
