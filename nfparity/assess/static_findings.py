"""Findings without packets: versions, modules, names, and tables of the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from nfparity.assess.difference import Evidence, evidence
from nfparity.assess.node.facts import Facts
from nfparity.kubeproxy.service import Service
from nfparity.requires import Presence, kube_proxy_needs, snapshot_modules
from translate.dataclass import dataclass
from translate.ir import Name, format_address

__all__ = ["StaticFinding", "static_findings"]

_KERNEL: Final = (5, 13)
_NFT: Final = (1, 0, 1)
_COMMENT_BYTES: Final = 128
"""The longest comment of an element or rule (``NFTNL_UDATA_COMMENT_MAXLEN`` of libnftnl)."""
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFinding:
    """A difference that is visible in the snapshot: its id, subject, a sentence about it, and its lines.

    It holds if its entry of the catalogue holds at the node's version.
    """

    k: str
    subject: str
    description: str
    lines: tuple[Evidence, ...] = ()


def static_findings(facts: Facts) -> Iterator[StaticFinding]:
    """Yield the findings that need no packet."""
    yield from _too_old(facts)
    yield from _collisions(facts)
    yield from _long_names(facts)
    yield from _interface_names(facts)
    yield from _modules(facts)
    yield from _leftovers(facts)


def _too_old(facts: Facts) -> Iterator[StaticFinding]:
    for subject, place, least in (("Linux", ("kernel", "release"), _KERNEL), ("nft", ("tools", "nft"), _NFT)):
        version = _version(facts.meta, place)
        if version is not None and version < least:
            reason = f"{subject} is {'.'.join(map(str, version))}, below {'.'.join(map(str, least))}"
            yield StaticFinding(k="K08", subject=subject, description=reason)


def _version(meta: Mapping[str, object], place: tuple[str, str]) -> tuple[int, ...] | None:
    """Return the version that capture recorded, if any."""
    inner = meta.get(place[0])
    value = inner.get(place[1]) if isinstance(inner, Mapping) else None
    match = _NUMBERS.search(value) if isinstance(value, str) else None
    return None if match is None else tuple(int(n) for n in match[0].split("."))


def _collisions(facts: Facts) -> Iterator[StaticFinding]:
    owners: dict[tuple[int, int, str], list[Service]] = {}
    for service in facts.services:
        for address in service.external_addresses:
            if service.port is not None:
                owners.setdefault((address, service.port, service.protocol.value), []).append(service)
    for (address, port, protocol), services in owners.items():
        if len(services) < 2:
            continue
        names = " and ".join(facts.label(s) for s in services)
        where = f"{format_address(facts.family, address)}:{port}/{protocol}"
        lines = evidence(line for s in services for line in s.lines if line.address == address)
        yield StaticFinding(k="K29", subject=names, description=f"both have {where}", lines=lines)


def _long_names(facts: Facts) -> Iterator[StaticFinding]:
    for service in facts.services:
        size = len((service.name or "").encode())
        if size > _COMMENT_BYTES:
            reason = f"its name has {size} bytes, and a comment of nftables at most {_COMMENT_BYTES}"
            yield StaticFinding(
                k="K42", subject=facts.label(service), description=reason, lines=evidence(service.lines)
            )


def _interface_names(facts: Facts) -> Iterator[StaticFinding]:
    pods = facts.state.pods
    if isinstance(pods, Name):
        name = f"{pods.text}{'+' if pods.wildcard else ''}"
        yield StaticFinding(
            k="K43", subject=name, description=f"packets of pods are those of interface {name}"
        )


def _modules(facts: Facts) -> Iterator[StaticFinding]:
    """Yield the modules that are missing, if capture recorded those of the node."""
    node = snapshot_modules(facts.meta, name="the node")
    if node is None:
        return
    for need in kube_proxy_needs((facts.family,)):
        if node.presence(need.module) is Presence.ABSENT:
            yield StaticFinding(
                k="K44", subject=need.module, description="the node does not have this module"
            )
    rules = [rule for rule in facts.ruleset.rules() if any(match.name == "nfacct" for match in rule.matches)]
    if rules and node.presence("xt_nfacct") is Presence.ABSENT:
        lines = ", ".join(str(rule.origin.line) for rule in rules)
        yield StaticFinding(k="K46", subject="xt_nfacct", description=f"the rules at lines {lines} need it")


def _leftovers(facts: Facts) -> Iterator[StaticFinding]:
    table = f"{facts.family.value} kube-proxy"
    if table in facts.native_tables and facts.services:
        yield StaticFinding(
            k="K45", subject=table, description="this table and chains of the iptables mode exist"
        )
