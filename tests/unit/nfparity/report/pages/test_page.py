"""Values in templates: escaped, visible and ASCII."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nfparity.report.pages import page
from nfparity.report.pages.page import render
from tests.unit.nfparity.report.pages.helpers.hostile import HOSTILE
from tests.unit.nfparity.report.pages.helpers.markup import parsed


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A template beside a style and a script; no page of it stays in the cache."""
    monkeypatch.setattr(page, "_FOLDER", tmp_path)
    for name in ("page.css", "page.js"):
        (tmp_path / name).write_text("")
    page._environment.cache_clear()
    yield tmp_path / "t.html"
    page._environment.cache_clear()


@pytest.mark.parametrize(
    "text", ['<p title="{{ value }}">{{ value }}</p>', "<p title='{{ value }}'>{{ value }}</p>"]
)
def test_a_value_is_a_text_in_elements_and_attributes(text: str, template: Path) -> None:
    template.write_text(text)
    rendered = render("t.html", {"value": HOSTILE})
    assert rendered.isascii()
    (element,) = parsed(rendered).below
    assert list(element.attributes) == ["title"]
    assert element.text == element.attributes["title"]
    assert not element.below
    assert element.text.startswith("</script><script>hacked()</script><img")
    assert (
        "\\u202e\\u2066\\u200f \\u0000\\u0007\\u001b[31m \\u000d\\n\\u2028\\udcff ]]> \N{SNOWMAN}"
        in element.text
    )


def test_an_unknown_name_in_a_template_is_an_error(template: Path) -> None:
    template.write_text("{{ missing }}")
    with pytest.raises(Exception, match="missing"):
        render("t.html", {})


def test_the_sources_of_pages_are_ascii_and_fetch_nothing() -> None:
    folder = Path(page.__file__).parent
    sources = [path for path in folder.iterdir() if path.suffix in (".html", ".css", ".js")]
    assert len(sources) >= 5
    for path in sources:
        text = path.read_bytes().decode("ascii")
        for forbidden in (
            "http:",
            "https:",
            "url(",
            "@import",
            "fetch(",
            "XMLHttpRequest",
            "style=",
            "eval(",
        ):
            assert forbidden not in text, path
        if path.name == "page.js":
            assert "</script" not in text.lower()
        if path.name == "page.css":
            assert "</style" not in text.lower()
