"""The names of kube-proxy's per-service chains, which are hashes of the service's name.

``pkg/proxy/iptables``: ``portProtoHash`` and ``servicePortEndpointChainName``.
"""

from __future__ import annotations

import base64
import hashlib
from enum import StrEnum

__all__ = ["ChainKind", "Protocol", "chain_name", "name_hash", "split_chain"]


class Protocol(StrEnum):
    """A Service's protocol, as rules spell it."""

    TCP = "tcp"
    UDP = "udp"
    SCTP = "sctp"


class ChainKind(StrEnum):
    """The purpose of a per-service chain."""

    SVC = "SVC"
    """Picks one of all endpoints."""
    SVL = "SVL"
    """Picks one of the endpoints on this node (1.24 and later)."""
    EXT = "EXT"
    """Traffic to external addresses and node ports (1.24 and later)."""
    XLB = "XLB"
    """SVL and EXT in one chain, for externalTrafficPolicy Local (before 1.24)."""
    FW = "FW"
    """Tests the source ranges of a load balancer."""
    SEP = "SEP"
    """One endpoint."""


_HASH_LENGTH = 16


def name_hash(text: str) -> str:
    """Return the suffix of kube-proxy's chain names: 16 base32 characters of the SHA-256 of ``text``."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:_HASH_LENGTH]


def chain_name(kind: ChainKind, name: str, protocol: Protocol, endpoint: str = "") -> str:
    """Return the name of a chain of the service ``name`` (``namespace/service:port``).

    ``endpoint`` is the endpoint of a SEP chain, spelled as for ``--to-destination``; other kinds have none.
    """
    return f"KUBE-{kind}-{name_hash(name + protocol + endpoint)}"


def split_chain(name: str) -> tuple[ChainKind, str] | None:
    """Return kind and hash of a per-service chain, or None for any other chain.

    The hash can be any text, because the dump may be anonymised or written by hand.
    """
    parts = name.split("-", 2)
    if len(parts) != 3 or parts[0] != "KUBE" or not parts[2]:
        return None
    return (ChainKind(parts[1]), parts[2]) if parts[1] in ChainKind.__members__ else None
