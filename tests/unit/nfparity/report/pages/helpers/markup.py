"""HTML pages as elements, and the checks that every page must pass."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

__all__ = ["Element", "checked_page", "everything", "parsed"]

_VOID = frozenset({"meta", "input", "br", "link", "img"})
_EVENTS = re.compile(r"on[a-z]+")
_FETCHING = frozenset(
    {"src", "srcset", "action", "formaction", "data", "poster", "background", "ping", "manifest"}
)
_DRAWN = {
    "svg": {"role", "aria-label", "width", "height", "viewbox"},
    "g": {"transform"},
    "path": {"d"},
    "rect": {"x", "y", "width", "height", "rx"},
    "text": {"x", "y"},
    "title": set[str](),
}
_CONTROLS = frozenset({"input", "select", "textarea"})


@dataclass
class Element:
    """An element with its attributes, and its elements and texts in order."""

    tag: str
    attributes: dict[str, str]
    parts: list[Element | str] = field(default_factory=list)

    @property
    def below(self) -> list[Element]:
        """The child elements."""
        return [part for part in self.parts if isinstance(part, Element)]

    @property
    def text(self) -> str:
        """The text of the element and of its descendants."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str, name: str = "") -> list[Element]:
        """Return the descendants with this tag, and of this class if it is given."""
        return [
            element
            for element in everything(self)
            if element.tag == tag and (not name or name in element.attributes.get("class", "").split())
        ]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of {tag} is given twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> in {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def parsed(text: str) -> Element:
    """Return the root of a page or of a part of one; every element must end where it should."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def checked_page(text: str) -> Element:
    """Assert the properties that every page must have, and return its root.

    Nothing is fetched, only the style and the script of the policy apply, ids are unique, every control has a
    label, and headings leave out no level.
    """
    assert text.startswith("<!doctype html>")
    assert text.isascii()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    root = parsed(text)
    elements = everything(root)
    for element in elements:
        assert element.tag not in (
            "link",
            "iframe",
            "object",
            "embed",
            "base",
            "img",
            "video",
            "audio",
        )
        for name, value in element.attributes.items():
            assert not _EVENTS.fullmatch(name), (element.tag, name)
            assert name not in (_FETCHING | {"style"}), (element.tag, name)
            assert name != "href" or value.startswith("#"), value
    _check_drawings(root)
    _check_policy(root)
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    labelled = {element.attributes.get("for") for element in root.all("label")}
    wrapped = [id(inner) for label in root.all("label") for inner in everything(label)]
    for element in elements:
        if element.tag in _CONTROLS:
            assert element.attributes.get("id") in labelled - {None} or id(element) in wrapped, (
                element.attributes
            )
        if element.tag == "button":
            assert element.text.strip()
        for name in ("aria-labelledby", "list"):
            assert element.attributes.get(name, ids[0] if ids else "") in ids or not ids
    levels = [int(element.tag[1]) for element in elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    return root


def _check_drawings(root: Element) -> None:
    """Assert that drawings have a name, only lines, boxes and texts, and only attributes of their places."""
    for drawing in root.all("svg"):
        assert drawing.attributes["aria-label"]
        for element in (drawing, *everything(drawing)):
            assert element.tag in _DRAWN, element.tag
            assert set(element.attributes) <= _DRAWN[element.tag] | {"class"}, element.attributes


def _check_policy(root: Element) -> None:
    (policy,) = (
        element.attributes["content"]
        for element in root.all("meta")
        if element.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        sources = {_hash(e.text) for e in root.all(tag) if e.attributes.get("type") != "application/json"}
        assert sources <= {rules[rule]}
        for forbidden in ("url(", "@import", "http:", "https:", "fetch(", "import("):
            assert not [e for e in root.all(tag) if not e.attributes and forbidden in e.text]


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def everything(root: Element) -> list[Element]:
    """Return all descendants, in the order of the page."""
    return [element for child in root.below for element in (child, *everything(child))]
