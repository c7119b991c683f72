"""The bytes of a sample's headers."""

from __future__ import annotations

from tests.lab.bytecode.samples import State
from translate.ir import Family, Field

__all__ = ["network", "transport"]


def network(state: State) -> bytes:
    """Return the header of IPv4 or IPv6."""
    sample, tos, ttl = state.sample, state.tos, state.ttl
    addresses = b"".join(
        sample.number(f).to_bytes(sample.family.bits // 8, "big") for f in (Field.SADDR, Field.DADDR)
    )
    if sample.family is Family.IP6:
        label = sample.number(Field.DPORT)  # where a port would be if this were a transport header
        return (6 << 28 | tos << 20 | label).to_bytes(4, "big") + bytes(3) + bytes((ttl,)) + addresses
    # An offset in units of eight bytes for a later fragment, also the highest bit alone; "more fragments".
    offset = 0x1000 if sample.draw & 1 else 185
    fragment = (offset if sample.fragment else 0) | 0x2000
    whole = bytes((0x45, tos)) + bytes(4) + fragment.to_bytes(2, "big")
    return whole + bytes((ttl,)) + bytes(3) + addresses


def transport(state: State) -> bytes:
    """Return the first bytes of the transport header: as many as a TCP header without options has."""
    sample = state.sample
    ports = sample.number(Field.SPORT) << 16 | sample.number(Field.DPORT)
    header = bytearray(ports.to_bytes(4, "big").ljust(20, b"\0"))
    header[13] = state.flags
    match sample.number(Field.L4PROTO):
        case 33:
            header[8] = sample.number(Field.DCCP_TYPE) << 1
        case 50:
            header[:4] = sample.number(Field.ESP_SPI).to_bytes(4, "big")
        case 51:
            header[1] = sample.number(Field.AH_LENGTH)
            header[2:4] = sample.number(Field.AH_RESERVED).to_bytes(2, "big")
            header[4:8] = sample.number(Field.AH_SPI).to_bytes(4, "big")
        case 108:
            header[2:4] = sample.number(Field.IPCOMP_CPI).to_bytes(2, "big")
    return bytes(header)
