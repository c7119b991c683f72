"""Flows as JSON Lines, one flow per line: the format of corpora.

The shortest line is a packet with an ``id`` and its entry interface::

    {"id": "dns", "in": "eth0", "src": "10.244.0.9", "dst": "10.96.0.10", "proto": "udp",
     "sport": 40000, "dport": 53}

``"in": null`` is a packet sent by the node. ``"auto"``, the default, picks the interface by the reverse route
of ``src``. Further keys of a packet: ``ttl``, ``tos``, ``payload``, ``length`` (of the IP packet; zeros pad
the payload), ``mark``, ``bad_checksum``, and ``smac`` and ``dmac``, the hardware addresses of its frame
(default: those of the neighbour on the link and of the node's device). A packet of IPv6 may have a routing
header: ``"routing": {"type": 0, "left": 0, "length": 0}``, each 0 by default, and ``hop_options`` and
``destination_options``, headers of this length in units of 8 bytes, without the first. A packet that came in
may be a fragment: ``"fragment": {"offset": 185, "more": true, "id": 7}``; the offset counts units of 8 bytes.
Without ``more`` it is the last one, without ``id`` each packet has an identification of its own. The first
fragment, at offset 0, has the keys of a whole packet; a later one has no ports, flags or ICMP type, and only
data after its IP header. ``"truncated": true`` is a packet that ends within its header of TCP, UDP, UDP-Lite,
SCTP or ICMP; ``payload`` is its part of the header, and it has no ports, flags or ICMP type. ``time`` is the
node's clock in UTC (``2026-01-05T12:00:00``; default: the present). ``cpu`` is the processor that handles the
packet, 0 by default. ``then`` lists the steps after the first packet: ``{"reply": {}}``,
``{"again": {"flags": "FA"}}``,
``{"error": "port-unreachable"}``, ``{"pause": 1.5}``, ``{"send": {packet}}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import assert_never

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.node import Node
from harness.corpus.formats.entry import entry_of
from harness.corpus.formats.packets import flags_to_text, icmp_kinds, packet_fields, parse_flags, read_packet
from translate.ir import Family, TcpFlag, format_address
from translate.jsoninput import JsonObject, Problems, json_lines

__all__ = ["flow_to_json", "read_flows", "write_flows"]

_STEPS = ("reply", "again", "error", "pause", "send")


def read_flows(data: bytes, *, name: str, node: Node | None = None) -> tuple[Flow, ...]:
    """Return the flows of a corpus.

    ``name`` is its name in messages; ``node`` resolves ``auto`` and interface names.

    Raises ParseError with every problem found: text that is not JSON, unknown keys, bad values, two
    flows of the same id, interfaces that the node does not have.
    """
    problems = Problems()
    flows: dict[str, Flow] = {}
    for obj in json_lines(data, name=name, problems=problems):
        flow = _read_flow(obj, node)
        if flow is None:
            continue
        if flow.id in flows:
            obj.problem("id", f"{flow.id!r} is already the id of the flow at {flows[flow.id].source}")
        flows.setdefault(flow.id, flow)
    problems.raise_if_any()
    return tuple(flows.values())


def _read_flow(obj: JsonObject, node: Node | None) -> Flow | None:
    flow_id = obj.text("id", None)
    if not flow_id:
        obj.problem("id" if obj.has("id") else None, "id is missing or empty")
    why = obj.text("why", "")
    first = _read_send(obj, node)
    steps: list[Step] = [] if first is None else [first]
    family = Family.IP if first is None else first.packet.family
    for given_step in obj.objects("then"):
        step = _read_step(given_step, node, family)
        if step is not None:
            steps.append(step)
        given_step.finish()
    obj.finish()
    if not obj.ok or flow_id is None:
        return None
    return Flow(id=flow_id, steps=tuple(steps), why=why, source=obj.place)


def _read_send(obj: JsonObject, node: Node | None) -> Send | None:
    packet = read_packet(obj)
    stated = obj.take("in") if obj.has("in") else "auto"
    if packet is None:
        return None
    if stated is not None and not isinstance(stated, str):
        obj.problem("in", 'expected the name of an interface, "auto", or null for a packet made on the node')
        return None
    entry = stated
    if stated == "auto":
        if node is None:
            obj.problem("in", "auto needs a node", "name the interface, or give the node")
            return None
        try:
            entry = entry_of(node, packet.family, packet.src)
        except ValueError as e:
            obj.problem("in", str(e))
            return None
    elif stated is not None and node is not None and node.interface(stated) is None:
        names = ", ".join(i.name for i in node.interfaces)
        obj.problem("in", f"the node has no interface {stated!r}", f"it has {names}")
    if packet.mark and entry is not None:
        obj.problem("mark", "only packets made on the node carry a mark", 'they have "in": null')
    for key, value in (("uid", packet.uid), ("gid", packet.gid)):
        if value and entry is not None:
            obj.problem(key, "only packets made on the node have an owner", 'they have "in": null')
    if entry is None and (packet.smac, packet.dmac) != (None, None):
        obj.problem("in", "a packet made on the node has no frame", "leave out smac and dmac")
    if entry is None and packet.fragment is not None:
        obj.problem("fragment", "the node itself sends no fragments", "name the interface where it arrives")
    return Send(packet=packet, entry=entry)


def _read_step(obj: JsonObject, node: Node | None, family: Family) -> Step | None:
    kinds = [k for k in _STEPS if obj.has(k)]
    if len(kinds) != 1:
        obj.problem(None, f"expected exactly one of {', '.join(_STEPS)}")
        for kind in kinds:
            obj.take(kind)
        return None
    kind = kinds[0]
    if kind == "pause":
        return Pause(seconds=obj.number("pause", 0.0))
    if kind == "error":
        return _read_error(obj, family)
    value = obj.take(kind)
    if not isinstance(value, dict):
        obj.problem(kind, "expected an object")
        return None
    inner = obj.child(kind, value)
    step: Step | None
    if kind == "send":
        step = _read_send(inner, node)
        if step is not None and step.packet.family is not family:
            inner.problem("src", "the steps of a flow must be of one address family")
    else:
        flags = _read_flags(inner)
        step = Reply(flags=flags) if kind == "reply" else Again(flags=flags)
    inner.finish()
    return step


def _read_flags(obj: JsonObject) -> TcpFlag | None:
    text = obj.text("flags", None)
    if text is None:
        return None
    try:
        return parse_flags(text)
    except ValueError as e:
        obj.problem("flags", str(e))
        return None


def _read_error(obj: JsonObject, family: Family) -> IcmpError | None:
    value = obj.take("error")
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict):
        obj.problem("error", 'expected a name, or an object like {"type": 3, "code": 3, "from": "…"}')
        return None
    inner = obj.child("error", value)
    source = inner.address("from")
    if source is not None and source[0] is not family:
        inner.problem("from", "is of another address family than the flow")
    name = inner.text("kind", None)
    number = inner.integer("type", None, low=0, high=255)
    code = inner.integer("code", 0, low=0, high=255)
    inner.finish()
    kinds = icmp_kinds(family)
    if (name is None) == (number is None):
        inner.problem(None, "expected either kind or type")
    elif name is not None and name not in kinds:
        inner.problem("kind", f"unknown ICMP error {name!r}", f"known are {', '.join(kinds)}")
    elif name is not None and inner.has("code"):
        inner.problem("code", "kind already determines the code")
    if not inner.ok:
        return None
    if name is not None:
        number, code = kinds[name]
    assert number is not None
    return IcmpError(type=number, code=code, source=None if source is None else source[1])


def flow_to_json(flow: Flow) -> dict[str, object]:
    """Return a flow as the JSON object that :func:`read_flows` reads."""
    out: dict[str, object] = {"id": flow.id, "in": flow.first.entry, **packet_fields(flow.first.packet)}
    if flow.why:
        out["why"] = flow.why
    then = [_step_to_json(step, flow.family) for step in flow.steps[1:]]
    if then:
        out["then"] = then
    return out


def _step_to_json(step: Step, family: Family) -> dict[str, object]:
    match step:
        case Send():
            return {"send": {"in": step.entry, **packet_fields(step.packet)}}
        case Reply():
            return {"reply": {} if step.flags is None else {"flags": flags_to_text(step.flags)}}
        case Again():
            return {"again": {} if step.flags is None else {"flags": flags_to_text(step.flags)}}
        case IcmpError():
            return {"error": _error_to_json(step, family)}
        case Pause():
            whole = int(step.seconds) == step.seconds
            return {"pause": int(step.seconds) if whole else step.seconds}
        case _:
            assert_never(step)


def _error_to_json(step: IcmpError, family: Family) -> object:
    names = {v: k for k, v in icmp_kinds(family).items()}
    name = names.get((step.type, step.code))
    if name is not None and step.source is None:
        return name
    out: dict[str, object] = {"type": step.type, "code": step.code} if name is None else {"kind": name}
    if step.source is not None:
        out["from"] = format_address(family, step.source)
    return out


def write_flows(flows: Iterable[Flow]) -> str:
    """Return the flows as JSON Lines in canonical form: one order of keys, defaults left out."""
    return "".join(json.dumps(flow_to_json(f), ensure_ascii=False) + "\n" for f in flows)
