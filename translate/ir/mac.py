"""Hardware addresses, as numbers and as text."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["format_mac", "parse_mac"]

_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def format_mac(value: int) -> str:
    """Return a hardware address as iptables and nft print it: ``02:00:00:00:01:01``."""
    return value.to_bytes(6, "big").hex(":")


def parse_mac(text: str) -> int:
    """Return a hardware address from six bytes in hexadecimal; raises ValueError for other text."""
    if not _MAC.fullmatch(text):
        raise ValueError(f"{text!r} is not a hardware address; write six bytes like 02:00:00:00:01:01")
    return int(text.replace(":", ""), 16)
