"""A field that ``Outcome`` or ``Packet`` gains is carried, written, read and compared by its type alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import backends.model

ROOT = Path(backends.model.__file__).parents[2]

PLANTED = """
import importlib.util, sys
from pathlib import Path

def planted(name, line, more):
    spec = importlib.util.find_spec(name)
    text = Path(spec.origin).read_text()
    assert text.count(line) == 1, line
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(text.replace(line, line + more), spec.origin, "exec"), module.__dict__)

planted("backends.model.packet", "    bad_checksum: bool = False\\n", "    vlan: int = 0\\n")
planted(
    "backends.model.outcome",
    "    snat: bool = False\\n",
    "    dscp: Annotated[int, range(64)] | None = None\\n"
    "    fragmented: bool = False\\n"
    "    zone: str | None = None\\n",
)

import json
from fractions import Fraction
from backends.model.flow import Flow, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet
from dataclasses import replace
from backends.replay.pipe import pack_flows, pack_results, unpack_flows, unpack_results
from harness.corpus.formats.outcomes import read_results, write_results
from harness.diff.compare import compare
from translate.errors import ParseError
from translate.ir import Family

packet = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, vlan=5)
flow = Flow(id="f", steps=(Send(packet=packet, entry="eth0"), Reply()))
(arrived,) = unpack_flows(pack_flows([flow], Family.IP))
assert arrived == flow and arrived.first.packet.vlan == 5
assert replace(packet, vlan=6).vlan == 6

made = Outcome.passed(out="eth0", packet=packet, ports=(3, 4), mark=0, dnat=False, snat=False, quoted=None)
assert (made.dscp, made.fragmented, made.zone) == (None, False, None)

def result(**fields):
    outcome = Outcome(verdict=Verdict.FORWARD, src=1, dst=2, ttl=63, mark=0, **fields)
    return FlowResult("f", (OutcomeBranch(Fraction(1), (outcome, outcome)),))

full = result(dscp=46, fragmented=True, zone="blue")
assert unpack_results(pack_results([full])) == [full]
text = write_results([(full, Family.IP)])
plain = json.loads(text)["outcomes"][0]
assert (plain["dscp"], plain["fragmented"], plain["zone"]) == (46, True, "blue")
assert read_results(text.encode(), name="text") == (full,)
try:
    read_results(text.replace("46", "64").encode(), name="text")
except ParseError as e:
    assert "63" in str(e), e
else:
    raise AssertionError("64 is no DSCP")

for field, value in (("dscp", 46), ("fragmented", True), ("zone", "blue")):
    found = compare(flow, result(), result(**{field: value}))
    assert [(one.step, one.field) for one in found] == [(0, field), (1, field)], found
print("all fields arrived")
"""


def test_a_new_field_needs_its_definition_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANTED], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "all fields arrived\n", done.stderr
