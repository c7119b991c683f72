"""Findings without packets: versions that are too old, services that collide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nfparity.assess.difference import Evidence, evidence
from nfparity.assess.facts import Facts
from nfparity.kubeproxy.service import Service
from translate.ir import format_address

__all__ = ["StaticFinding", "static_findings"]

_KERNEL: Final = (5, 13)
_NFT: Final = (1, 0, 1)
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFinding:
    """A difference that is visible in the snapshot: its id, subject, a sentence about it, and its lines."""

    k: str
    subject: str
    description: str
    lines: tuple[Evidence, ...] = ()


def static_findings(facts: Facts) -> Iterator[StaticFinding]:
    """Yield the findings that need no packet."""
    yield from _too_old(facts)
    yield from _collisions(facts)


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
