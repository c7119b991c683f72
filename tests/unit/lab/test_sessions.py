"""Sessions of pages: commands with their output, and where an output is not as shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.sessions import Command, examples, first_mismatch

PAGE = """\
# Title

```
$ nfparity translate rules \\
    --to nft
table ip nfparity {
…
}
# nfparity migrate status
```

```json
{"a": 1}
```
"""
OUTPUT = "first\nnfparity: 3/9 flows; 4 s so far\nsecond one, which took 3 s\nthird\nfourth\n"


def test_the_commands_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    session, data = examples(tmp_path, "page.md")
    assert session.commands == (
        Command("nfparity translate rules \\\n    --to nft", ("table ip nfparity {", "…", "}")),
        Command("nfparity migrate status", ()),
    )
    assert (data.language, data.text, data.commands) == ("json", '{"a": 1}\n', ())
    assert str(data) == "page.md:12"


@pytest.mark.parametrize(
    "shown",
    [
        ["first", "second one, which took 7 s", "third", "fourth"],
        ["…", "third", "…"],
        ["first", "…", "fourth"],
        ["first", "second …", "third", "fourth"],
        ["first", "…", "second one, which took 1 s", "…", "fourth", "…"],
        ["…"],
    ],
)
def test_an_output_that_is_as_shown(shown: list[str]) -> None:
    assert first_mismatch(shown, OUTPUT) is None


@pytest.mark.parametrize(
    ("shown", "mismatch"),
    [
        (["second …", "…"], "second …"),
        (["first", "…", "third"], "the output has more lines: fourth"),
        (["first", "third", "…"], "first\nthird"),
        (["…", "fourth", "…", "third", "…"], "third"),
        (["first", "second", "…"], "first\nsecond"),
    ],
)
def test_an_output_that_is_not_as_shown(shown: list[str], mismatch: str) -> None:
    assert first_mismatch(shown, OUTPUT) == mismatch
