"""The types of chunks of SCTP that nft has a name for."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

__all__ = ["CHUNKS"]

_FIRST: Final = (
    *("data", "init", "init-ack", "sack", "heartbeat", "heartbeat-ack", "abort", "shutdown"),
    *("shutdown-ack", "error", "cookie-echo", "cookie-ack", "ecne", "cwr", "shutdown-complete"),
)

CHUNKS: Final = MappingProxyType(
    {**dict(enumerate(_FIRST)), 0x80: "asconf-ack", 0xC0: "forward-tsn", 0xC1: "asconf"}
)
"""The name of each type, by its number."""
