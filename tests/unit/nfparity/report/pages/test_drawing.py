"""Drawings of paths."""

from __future__ import annotations

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import trace
from harness.explain.packetspec import parse_packet
from nfparity.report.pages.content import Drawing, Hop
from nfparity.report.pages.drawing import PathDrawer, observed_drawing
from translate.read import read_ruleset

RULES = """*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p udp -j MARK --set-xmark 0x1/0x1
COMMIT
*filter
:FORWARD DROP [0:0]
:A - [0:0]
:EMPTY - [0:0]
:LAST - [0:0]
:SIDE-1 - [0:0]
:SIDE-2 - [0:0]
:SIDE-3 - [0:0]
-A FORWARD -j EMPTY
-A FORWARD -j A
-A FORWARD -p udp -j SIDE-1
-A FORWARD -p udp -j SIDE-2
-A A -p udp -j SIDE-3
-A A -g LAST
-A LAST -p udp -j ACCEPT
COMMIT
"""
NODE = '{"interfaces": {"eth0": ["192.168.0.2/24"], "pod0": ["10.244.0.1/24"]}}'


def drawn(packet: str) -> Drawing:
    node = node_from_json(NODE, name="node")
    job = Job(rules=read_ruleset(RULES.encode(), name="rules"), node=node)
    (branch,) = trace(job, parse_packet(packet, node))
    return PathDrawer(job.ruleset, lambda line: f"service {line}" if line == 17 else "").draw(branch.steps[0])


def rows(drawing: Drawing) -> list[tuple[int, str, str, str]]:
    return [(box.x // 18, box.kind, box.text, box.note) for box in drawing.boxes]


def test_the_chains_that_were_taken_and_the_others_folded() -> None:
    drawing = drawn("tcp 192.168.0.9:1 > 10.244.0.3:80 in eth0")
    assert rows(drawing) == [
        (0, "hook", "PREROUTING", "tcp 192.168.0.9:1 > 10.244.0.3:80"),
        (1, "chain", "mangle PREROUTING", ""),
        (0, "hook", "FORWARD", "tcp 192.168.0.9:1 > 10.244.0.3:80"),
        (1, "chain", "filter FORWARD", ""),
        (2, "chain", "EMPTY", "line 13"),
        (2, "chain", "A", "line 14"),
        (3, "chain", "LAST", "line 18"),
        (3, "folded", "SIDE-3", "not taken"),
        (2, "decides", "policy of filter FORWARD", "DROP"),
        (2, "folded", "2 SIDE-*", "not taken"),
        (0, "end", "drop", "dropped in table filter, FORWARD"),
    ]


def test_a_decision_is_below_its_chain_with_line_and_service() -> None:
    found = rows(drawn("udp 192.168.0.9:1 > 10.244.0.3:80 in eth0"))
    assert (2, "decides", "sets mark 0x1", "line 3") in found
    assert (3, "chain", "SIDE-3", "line 17: service 17") in found
    assert (4, "decides", "accepts", "line 19") in found
    assert not any(kind == "folded" and text == "SIDE-3" for _, kind, text, _ in found)


def test_every_box_has_a_place_of_its_own_and_an_edge_from_its_chain() -> None:
    drawing = drawn("tcp 192.168.0.9:1 > 10.244.0.3:80 in eth0")
    for above, below in zip(drawing.boxes, drawing.boxes[1:], strict=False):
        assert above.y + above.height < below.y
    for box in drawing.boxes:
        assert box.x + box.width < drawing.width
        assert box.y + box.height < drawing.height
        ends = [
            edge for edge in drawing.edges if edge.end == box.x and box.y < edge.bottom <= box.y + box.height
        ]
        assert len(ends) == (1 if box.x else 0)
    dashed = [edge for edge in drawing.edges if not edge.taken]
    assert len(dashed) == sum(box.kind == "folded" for box in drawing.boxes) == 2


def test_a_long_text_is_cut_and_whole_in_the_title() -> None:
    (box,) = observed_drawing([Hop("hook", "x" * 99 + "\n", note="short")]).boxes
    assert box.text.endswith("…")
    assert len(box.text) < 50
    assert box.title == "x" * 99 + "\\n: short"


def test_an_observed_path_is_drawn_as_such() -> None:
    hops = (
        Hop("hook", "a packet in eth0"),
        Hop("step", "these rules", note="observed"),
        Hop("step", "NAT", decides=True),
        Hop("end", "end: leaves by eth0, as 192.0.2.1:7 > 10.244.0.5:80"),
    )
    assert rows(observed_drawing(hops)) == [
        (0, "hook", "a packet in eth0", ""),
        (1, "folded", "these rules", "observed"),
        (1, "decides", "NAT", ""),
        (0, "end", "leaves by eth0", "as 192.0.2.1:7 > 10.244.0.5:80"),
    ]
