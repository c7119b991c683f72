"""Additions of editors and shells of Windows change nothing of the meaning."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.model.node import node_from_json
from harness.corpus.formats.jsonlines import read_flows
from harness.files.userfiles import read_text
from translate.errors import ParseError
from translate.nftlisting import read_listing
from translate.plaintext import plain
from translate.read import read_ipsets, read_pieces, read_ruleset

RULES = '*filter\n:INPUT DROP [0:0]\n-A INPUT -m comment --comment "ü" -j ACCEPT\nCOMMIT\n'
LISTING = "Chain INPUT (policy ACCEPT)\ntarget     prot opt source               destination\n"
SETS = "create a hash:ip family inet\nadd a 10.0.0.1\n"
NODE = '{"interfaces":\n {"eth0": ["10.0.0.3/24"]}}\n'
FLOWS = '{"id": "a", "in": null, "src": "10.0.0.1", "dst": "10.0.0.2", "proto": 99}\n\n'
NFT = "table ip a {\n\tchain b {\n\t\taccept\n\t}\n}\n"

INPUTS: dict[str, tuple[str, Callable[[bytes, Path], object]]] = {
    "rules": (RULES, lambda data, _: read_ruleset(data, name="f")),
    "listing": (LISTING, lambda data, _: read_ruleset(data, name="f")),
    "page": (f"Look:\n{RULES}", lambda data, _: read_pieces(data, name="f")),
    "ipsets": (SETS, lambda data, _: read_ipsets(data, name="f")),
    "node": (NODE, lambda data, path: node_from_json(_text(data, path), name="f")),
    "corpus": (FLOWS, lambda data, _: read_flows(data, name="f")),
    "nftables": (NFT, lambda data, path: read_listing(_text(data, path), name="f").commands),
}
FORMS: dict[str, Callable[[str], bytes]] = {
    "CR LF": lambda text: text.replace("\n", "\r\n").encode(),
    "byte order mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "UTF-16": lambda text: codecs.BOM_UTF16_LE + text.replace("\n", "\r\n").encode("utf-16-le"),
    "UTF-16, big-endian": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "UTF-32": lambda text: codecs.BOM_UTF32_LE + text.encode("utf-32-le"),
}


def _text(data: bytes, folder: Path) -> str:
    path = folder / "input"
    path.write_bytes(data)
    return read_text(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_is_read_without_them(kind: str, form: str, tmp_path: Path) -> None:
    text, read = INPUTS[kind]
    assert read(FORMS[form](text), tmp_path) == read(text.encode(), tmp_path)


def test_a_carriage_return_by_itself_is_no_end_of_a_line() -> None:
    assert plain(b"a\rb\r\r\n", name="f") == b"a\rb\r\n"
    with pytest.raises(ParseError, match="f:3:"):
        read_ruleset(b"*filter\n:INPUT DROP [0:0]\n-A INPUT -p\rtcp\nCOMMIT\n", name="f")


@pytest.mark.parametrize("data", [b"\xff\xfea", b"\xff\xfe\x00\xdc", b"\xff\xfe\x00\x00\xff\xff\xff\xff"])
def test_what_is_not_what_its_mark_says(data: bytes) -> None:
    with pytest.raises(ParseError, match="that its byte order mark announces"):
        plain(data, name="f")
