"""The picture of the chains."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from harness.report.graphsvg import svg_text
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.errors import InputError
from translate.ir import Ruleset
from translate.read import read_ruleset

SVG = "{http://www.w3.org/2000/svg}"
RULES = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:a<b>&c - [0:0]
:b - [0:0]
:lonely - [0:0]
-A FORWARD -j a<b>&c
-A FORWARD -g b
-A a<b>&c -j b
-A a<b>&c -p tcp -j b
-A lonely -p udp -j b
COMMIT
"""


def ruleset(text: str) -> Ruleset:
    return read_ruleset(text.encode(), name="r<u>les")


def drawn(text: str, start: str | None = None) -> ET.Element:
    """The root of a picture, which must fetch nothing, run nothing and have no overlapping boxes."""
    made = svg_text(ruleset(text), start=start)
    assert made == svg_text(ruleset(text), start=start)
    assert made.isascii()
    root = ET.fromstring(made)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "style", "text", "path", "g", "rect",
    }  # fmt: skip
    for element in root.iter():
        assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
    style = root.findtext(f"{SVG}style")
    assert style is not None
    assert not re.search(r"url\(|@import|http", style)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    corners = []
    for group in root.iter(f"{SVG}g"):
        x, y = map(int, re.findall(r"\d+", group.attrib["transform"]))
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        corners.append((x, y, x + int(rect.attrib["width"]), y + int(rect.attrib["height"])))
    for x1, y1, x2, y2 in corners:
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
    for path in root.iter(f"{SVG}path"):
        points = re.findall(r"(\d+) (-?\d+)", path.attrib["d"])
        assert all(0 <= int(x) <= width and 0 <= int(y) <= height for x, y in points)
        for x, y, right in re.findall(r" (\d+) (\d+)H(\d+)", path.attrib["d"]):
            passed = (int(x), int(y), int(right), int(y) + 1)
            assert not [
                c for c in corners if c[0] < passed[2] and passed[0] < c[2] and c[1] < passed[1] < c[3]
            ]
    for one, other in combinations(corners, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return root


def boxes(root: ET.Element) -> dict[str, tuple[str, str]]:
    """The kind and the note of each box, by name."""
    return {
        str(name.text): (group.attrib["class"], str(note.text))
        for group in root.iter(f"{SVG}g")
        for name, note in (group.findall(f"{SVG}text"),)
    }


def test_boxes_have_names_and_curves_have_lines() -> None:
    root = drawn(RULES)
    assert boxes(root) == {
        "INPUT, OUTPUT": ("built-in", "policy ACCEPT, 0 rules"),
        "FORWARD": ("built-in", "policy DROP, 2 rules"),
        "a<b>&c": ("", "2 rules"),
        "b": ("", "0 rules"),
        "lonely": ("unused", "1 rule, no rule jumps to it"),
    }
    curves = root.findall(f"{SVG}path")
    assert len(curves) == 4
    assert len([curve for curve in curves if curve.attrib.get("class") == "goto"]) == 1
    labels = [text.text for text in root.findall(f"{SVG}text") if text.attrib["class"] == "label"]
    assert sorted(map(str, labels)) == ["2 rules", "line 12", "line 8", "line 9"]
    assert root.findtext(f"{SVG}title") == "r<u>les: 6 chains in 5 boxes"


def test_only_the_chains_below_one() -> None:
    assert list(boxes(drawn(RULES, start="lonely"))) == ["b", "lonely"]
    with pytest.raises(InputError, match="no chain is called 'none'"):
        svg_text(ruleset(RULES), start="none")


def test_every_curve_goes_to_the_right_except_in_cycles_of_groups() -> None:
    chains = "".join(f":c{n}x - [0:0]\n" for n in range(20))
    jumps = "".join(f"-A c{n}x -j c{n + 1}x\n" for n in range(19))
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{chains}-A FORWARD -j c0x\n{jumps}COMMIT\n"
    ends = [re.findall(r"\d+", path.attrib["d"]) for path in drawn(text).findall(f"{SVG}path")]
    assert all(int(end[0]) < int(end[-2]) for end in ends)
    assert len(ends) == 20
    chains = "".join(f":{side}-{n} - [0:0]\n" for side in "AB" for n in range(40))
    jumps = "".join(f"-A A-{n} -j B-{n}\n-A B-{n} -j A-{n + 1}\n" for n in range(39))
    root = drawn(f"*filter\n:FORWARD ACCEPT [0:0]\n{chains}-A FORWARD -j A-0\n{jumps}COMMIT\n")
    assert boxes(root)["A-*"] == ("several", "39 chains, 1 rule each")
    labels = [text.text for text in root.findall(f"{SVG}text") if text.attrib["class"] == "label"]
    assert labels.count("38 rules") == 1


def test_a_deep_nesting_is_folded() -> None:
    chains = "".join(f":c{n} - [0:0]\n" for n in range(3000))
    jumps = "".join(f"-A c{n} -j c{n + 1}\n" for n in range(2999))
    root = drawn(f"*filter\n:FORWARD ACCEPT [0:0]\n{chains}-A FORWARD -j c0\n{jumps}COMMIT\n")
    found = boxes(root)
    assert set(found) == {"FORWARD", "c*", "c2999"}
    assert found["c*"] == ("several", "2999 chains, 1 rule each, nested")


def test_services_are_folded_and_more_services_make_no_larger_picture() -> None:
    small, large = (
        drawn(kube_proxy_rules(draw_cluster(Shape(services=count, node_ports=5, affinity=5))))
        for count in (60, 600)
    )
    assert float(large.attrib["width"]) <= float(small.attrib["width"]) + 100
    assert float(large.attrib["height"]) <= float(small.attrib["height"]) + 100
    services = {name: note for name, (_, note) in boxes(large).items() if name.startswith("KUBE-SVC")}
    assert "chains, " in services["KUBE-SVC-*"]
    assert any("H" in path.attrib["d"] for path in large.findall(f"{SVG}path"))  # past the services
