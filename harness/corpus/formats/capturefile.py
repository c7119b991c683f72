"""Capture files as lists of IP packets: pcap and pcapng, read and written by scapy.

Only this module imports scapy, and it does so at the first use, because the library is large.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from harness.files.userfiles import read_bytes, write_bytes
from translate.dataclass import dataclass
from translate.errors import Diagnostic, ParseError
from translate.ir import Origin

__all__ = ["CapturedFrame", "read_capture", "write_capture"]

# https://www.tcpdump.org/linktypes.html
_NULL: Final = 0
_ETHERNET: Final = 1
_RAW: Final = 101
_SLL: Final = 113
_IPV4: Final = 228
_IPV6: Final = 229
_SLL2: Final = 276
_RAW_OLD: Final = (12, 14)
_ETHERTYPES: Final = {0x0800: 4, 0x86DD: 6}
_NULL_FAMILIES: Final = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
"""AF_INET, and the AF_INET6 of Linux, NetBSD, FreeBSD and Darwin, in the capturing host's byte order."""
_VLAN_ETHERTYPES: Final = (0x8100, 0x88A8)


@dataclass(frozen=True, slots=True)
class CapturedFrame:
    """One frame: its number in the file (from 1), and its IP packet or the reason why it contains none."""

    number: int
    data: bytes | None
    why: str = ""


def read_capture(path: Path) -> list[CapturedFrame]:
    """Return every frame of a capture; ParseError when the file is not a capture, or is truncated."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader

    contents = read_bytes(path)
    frames: list[CapturedFrame] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # scapy's metaclass also accepts an open file, although its annotation allows only a name
            with RawPcapReader(io.BytesIO(contents)) as reader:  # type: ignore[arg-type]
                for number, (data, metadata) in enumerate(reader, start=1):
                    linktype = getattr(metadata, "linktype", None)
                    linktype = reader.linktype if linktype is None else linktype
                    sent = int(getattr(metadata, "wirelen", None) or len(data))
                    frames.append(_frame(number, bytes(data), int(linktype), sent))
    except (Scapy_Exception, EOFError, struct.error, ValueError) as e:
        raise ParseError((Diagnostic(Origin(str(path)), f"not a pcap or pcapng capture: {e}"),)) from e
    return frames


def _frame(number: int, data: bytes, linktype: int, sent: int) -> CapturedFrame:
    """Return one frame; ``sent`` is its length before the capture truncated it (``snaplen``)."""
    ethertype, version, header = None, None, 0
    if linktype == _ETHERNET:
        header = 14
        while len(data) >= header and data[header - 2 : header] in _tags():
            header += 4
        ethertype = int.from_bytes(data[header - 2 : header], "big")
    elif linktype == _SLL:
        header = 16
        ethertype = int.from_bytes(data[14:16], "big")
    elif linktype == _SLL2:
        header = 20
        ethertype = int.from_bytes(data[0:2], "big")
    elif linktype == _NULL:
        header = 4
        version = _NULL_FAMILIES.get(max(data[0:1] + data[3:4], default=0), 0)
    elif linktype not in (_RAW, _IPV4, _IPV6, *_RAW_OLD):
        return CapturedFrame(number, None, f"link type {linktype} is not known")
    packet = data[header:]
    if ethertype is not None:
        version = _ETHERTYPES.get(ethertype, 0)
    nibble = packet[0] >> 4 if packet else 0
    if nibble not in (4, 6) or version not in (None, nibble):
        return CapturedFrame(number, None, "not IP")
    if len(data) < sent:
        return CapturedFrame(number, None, "cut short by the capture")
    return CapturedFrame(number, packet)


def _tags() -> tuple[bytes, ...]:
    return tuple(t.to_bytes(2, "big") for t in _VLAN_ETHERTYPES)


def write_capture(path: Path, packets: Iterable[tuple[float, bytes]]) -> None:
    """Write IP packets of either family with their times in seconds.

    The format is pcapng if the name ends in ``.pcapng``, otherwise pcap; the link type is raw IP. Raises
    InputError or MachineError when the file cannot be written; an existing file is then unchanged.
    """
    from scapy.utils import RawPcapNgWriter, RawPcapWriter

    with TemporaryDirectory(prefix="nfparity-") as folder:
        made = Path(folder, "packets")
        writer: RawPcapNgWriter | RawPcapWriter
        if path.suffix.lower() == ".pcapng":
            writer = RawPcapNgWriter(str(made))
            writer.linktype = _RAW
        else:
            writer = RawPcapWriter(str(made), linktype=_RAW)
        try:
            writer.write_header(None)
            for seconds, data in packets:
                whole = int(seconds)
                if isinstance(writer, RawPcapWriter):
                    writer.write_packet(data, sec=whole, usec=round((seconds - whole) * 1_000_000))
                else:
                    writer.write_packet(data, sec=seconds)
        finally:
            writer.close()
        write_bytes(path, made.read_bytes())
