"""The documentation site: complete pages, links that resolve, and nothing from the network."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from deploy.site import write_pages
from nfparity.assess.catalogue import catalogue
from nfparity.cli.main import COMMANDS

ROOT = Path(__file__).parents[3]
_ADDRESSES = {"a": "href", "link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The addresses in a page, with their elements, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and anchors of an element."""
        values = dict(attrs)
        self.anchors.update(value for key in ("id", "name") if (value := values.get(key)))
        if address := values.get(_ADDRESSES.get(tag, "")):
            self.addresses.append((tag, address))


def test_commands_differences_and_decisions_have_pages(tmp_path: Path) -> None:
    write_pages(tmp_path)
    for name in COMMANDS:
        page = (tmp_path / f"docs/reference/{name}.md").read_text()
        assert page.startswith(f"# nfparity {name}\n")
        assert f"usage: nfparity {name}" in page
    assert "## nfparity migrate rollback\n" in (tmp_path / "docs/reference/migrate.md").read_text()
    text = (tmp_path / "docs/catalogue.md").read_text()
    for entry in catalogue():
        assert f"\n## {entry.id}: {entry.title}\n" in text
    index = (tmp_path / "docs/decisions/README.md").read_text()
    for path in (ROOT / "docs/decisions").glob("*.md"):
        assert f"]({path.name})" in index


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="needs mkdocs-material (make site)")
def test_it_builds_without_warnings_and_every_link_resolves(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.site", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING -" not in done.stderr
    site = tmp_path / "html"
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 50
    wrong = []
    for path, page in pages.items():
        for tag, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                # Links that somebody clicks may lead elsewhere; what a page loads may not.
                if tag != "a":
                    wrong.append(f"{path.name}: loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if path.name == "404.html" and address.startswith("/"):
                target = site / unquote(parts.path).lstrip("/")
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.name}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{path.name}: {address} has no such anchor")
    assert not wrong
    index = json.loads((site / "search/search_index.json").read_text())
    assert any("iptables-save" in document["text"] for document in index["docs"])
