from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.lab.bench.plots import plot

SVG = "{http://www.w3.org/2000/svg}"


def lines(text: str) -> list[list[tuple[float, float]]]:
    found = ET.fromstring(text).iter(f"{SVG}polyline")
    return [[_point(p) for p in line.attrib["points"].split()] for line in found]


def _point(text: str) -> tuple[float, float]:
    x, y = map(float, text.split(","))
    return x, y


def test_equal_factors_are_equal_steps() -> None:
    (line,) = lines(plot("t", "s", {"a": [(10, 0.1), (100, 1), (1000, 10)]}))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert abs((x1 - x0) - (x2 - x1)) < 0.2
    assert abs((y0 - y1) - (y1 - y2)) < 0.2
    assert y1 < y0, "more is further up"


def test_what_has_no_logarithm_is_left_out() -> None:
    text = plot("memory < 1", "MiB", {"a": [(10, 0.0), (100, 2.0)], "b": [(10, -1.0)]})
    assert [len(line) for line in lines(text)] == [1]
    names = [t.text for t in ET.fromstring(text).iter(f"{SVG}text")]
    assert "memory < 1" in names
    assert "b" not in names


def test_nothing_measured_is_an_empty_plot() -> None:
    assert lines(plot("t", "s", {"a": []})) == []
