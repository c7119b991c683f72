"""``python -m deploy.site FOLDER``: the documentation as a site that needs no network (``make site``).

The pages are those of the checkout, at their paths, so that their links hold. The reference of commands and
the catalogue of differences are made from the code.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from nfparity.assess.catalogue import Version, catalogue
from nfparity.cli.main import COMMANDS, make_parser

__all__ = ["build_site", "write_pages"]

_ROOT: Final = Path(__file__).parents[1]
_GUIDES: Final = ("commands", "inputs", "nft-mode", "migrate", "tc", "kubectl", "ci", "api")
_PAGES: Final = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("docs/*.md", "docs/*.svg", "docs/decisions/*.md", "examples/*/README.md"),
    *("tests/lab/bench/*.md", "tests/lab/bench/*.svg", "tests/lab/bench/missed/*.md"),
)
_FOLDERS: Final = {"](docs/decisions)": "](docs/decisions/README.md)", "/hostports)": "/hostports/README.md)"}
"""Links to folders, for which a site has a page."""


def write_pages(folder: Path) -> None:
    """Write all pages as Markdown."""
    for pattern in _PAGES:
        for source in sorted(_ROOT.glob(pattern)):
            target = folder / source.relative_to(_ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                text = source.read_text(encoding="utf-8")
                for link, page in _FOLDERS.items():
                    text = text.replace(link, page)
                target.write_text(text, encoding="utf-8")
            else:
                shutil.copy(source, target)
    decisions = "".join(f"- [{title}]({path.name})\n" for path, title in _decisions())
    (folder / "docs/decisions/README.md").write_text(f"# Decisions\n\n{decisions}", encoding="utf-8")
    (folder / "docs/catalogue.md").write_text(_catalogue(), encoding="utf-8")
    reference = folder / "docs/reference"
    reference.mkdir()
    for name, parser in _subparsers(make_parser(COMMANDS)):
        parts = [f"# nfparity {name}\n\n{COMMANDS[name].capitalize()}.\n{_help(parser)}"]
        parts += [f"\n## nfparity {name} {action}\n{_help(own)}" for action, own in _subparsers(parser)]
        (reference / f"{name}.md").write_text("".join(parts), encoding="utf-8")


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _help(parser: argparse.ArgumentParser) -> str:
    return f"\n```text\n{parser.format_help()}```\n"


def _decisions() -> Iterator[tuple[Path, str]]:
    for path in sorted((_ROOT / "docs/decisions").glob("*.md")):
        yield path, path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _catalogue() -> str:
    parts = [
        "# Differences of kube-proxy's nftables mode\n\n"
        "The catalogue that `nfparity assess` tests ([nft-mode.md](nft-mode.md)).\n"
    ]
    for entry in catalogue():
        last = "on" if entry.last is None else f"to {_version(entry.last)}"
        rows = [
            ("occurs", entry.trigger),
            ("before", entry.before),
            ("after", entry.after),
            ("action", entry.action),
            ("Kubernetes", f"{_version(entry.first)} {last}"),
            ("decided by", f"{entry.decided}{f': {entry.reason}' if entry.reason else ''}"),
            ("packet", "; ".join(sorted(f"{before} → {after}" for before, after in entry.expects))),
            ("source", entry.source),
        ]
        table = "".join(f"| {label} | {_cell(text)} |\n" for label, text in rows if text)
        parts.append(f"\n## {entry.id}: {entry.title}\n\n| | |\n| --- | --- |\n{table}")
    return "".join(parts)


def _version(version: Version) -> str:
    return ".".join(map(str, version))


def _cell(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"&#{ord(character)};")
    return text


def _settings(pages: Path, target: Path) -> dict[str, Any]:
    """Return the configuration of MkDocs; every kind of doubtful link is a warning, and so an error."""
    others = sorted(path.stem for path in (pages / "docs").glob("*.md") if path.stem not in _GUIDES)
    decisions: list[Any] = ["docs/decisions/README.md"]
    decisions += [f"docs/decisions/{path.name}" for path, _ in _decisions()]
    figures = sorted(str(path.relative_to(pages)) for path in (pages / "tests").rglob("*.md"))
    examples = sorted(str(path.relative_to(pages)) for path in (pages / "examples").rglob("*.md"))
    return {
        "site_name": "nfparity",
        "docs_dir": str(pages),
        "site_dir": str(target),
        "strict": True,
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,  # fonts would be fetched
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        # Not the plugin offline: its pages load a script from unpkg.com to search without a web server.
        "plugins": ["search"],
        "markdown_extensions": [{"toc": {"permalink": True}}, "tables", "fenced_code"],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {
                "not_found": "warn",
                "anchors": "warn",
                "absolute_links": "warn",
                "unrecognized_links": "warn",
            },
        },
        "nav": [
            {"nfparity": "README.md"},
            {"Guides": [*(f"docs/{name}.md" for name in _GUIDES), *examples]},
            {"Commands": [{name: f"docs/reference/{name}.md"} for name in COMMANDS]},
            {"Reference": [f"docs/{name}.md" for name in others]},
            {"Decisions": decisions},
            {"Figures": figures},
            {"Project": ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]},
        ],
    }


def build_site(folder: Path) -> Path:
    """Build the site anew and return its folder. Raises CalledProcessError, also for a warning."""
    folder = folder.resolve()
    pages, target = folder / "pages", folder / "html"
    for made in (pages, target):
        shutil.rmtree(made, ignore_errors=True)
    pages.mkdir(parents=True)
    os.environ["COLUMNS"] = "100"  # the width of help texts
    write_pages(pages)
    settings = folder / "mkdocs.yml"
    settings.write_text(json.dumps(_settings(pages, target), indent=2), encoding="utf-8")  # JSON is YAML
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", settings], check=True)
    return target


if __name__ == "__main__":
    print(build_site(Path(sys.argv[1])))
