"""The virtual services of ``ip_vs``, in the form of ``ipvsadm-save -n``.

Without ipvsadm they are read from ``/proc/net/ip_vs``, which has them in a form of its own
(``ip_vs_info_seq_show``).
"""

from __future__ import annotations

import time
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from nfparity.capture.tools import Notes, Tools

__all__ = ["read_ipvs", "saved_form"]

_CLOCK_MONOTONIC_COARSE = 6
"""linux/time.h; its resolution is one jiffy."""
_WHOLE = 0xFFFFFFFF
_LENGTH = 128
_HEADER = 3
"""The number of lines before the first service."""
_OPTIONS = {"TCP": "-t", "UDP": "-u", "SCTP": "--sctp-service"}
_FORWARDING = {"Masq": "-m", "Route": "-g", "Tunnel": "-i", "Local": "-m"}


def read_ipvs(tools: Tools, notes: Notes, proc: Path) -> bytes | None:
    """Return the virtual services; None if there are none, or if they cannot be read."""
    # ipvsadm would load the module ip_vs; this file exists if it is loaded.
    try:
        listed = (proc / "net" / "ip_vs").read_text()
    except FileNotFoundError:
        return None
    except OSError as e:
        notes.add(f"/proc/net/ip_vs cannot be read: {e.strerror}")
        return None
    if len(listed.splitlines()) <= _HEADER:
        return None
    tool = tools.find("ipvsadm")
    if tool is not None:
        return tools.read(tool, "--save", "--numeric")
    try:
        return saved_form(listed, jiffy=time.clock_getres(_CLOCK_MONOTONIC_COARSE)).encode()
    except ValueError as e:
        notes.add(f"/proc/net/ip_vs is not understood, and ipvsadm is missing: {e}")
        return None


def saved_form(listed: str, *, jiffy: float) -> str:
    """Return the content of ``/proc/net/ip_vs`` as ``ipvsadm-save -n`` would print it.

    ``jiffy`` is the length of a jiffy in seconds, the unit of timeouts in that file. Raises ValueError for
    other contents.
    """
    lines = []
    service = ""
    for line in listed.splitlines()[_HEADER:]:
        words = line.split()
        if not words:
            continue
        if words[0] == "->":
            place, forwarding, weight = words[1:4]
            if forwarding not in _FORWARDING:
                raise ValueError(line)
            lines.append(f"-a {service} -r {_place(place)} {_FORWARDING[forwarding]} -w {weight}")
            continue
        if words[0] not in _OPTIONS or len(words) < 3:
            raise ValueError(line)
        service = f"{_OPTIONS[words[0]]} {_place(words[1])}"
        flags = words[3:]
        options = ["-A", service, "-s", words[2]]
        if "persistent" in flags:
            timeout, mask = flags[flags.index("persistent") + 1 :][:2]
            options += ["-p", str(round(int(timeout) * jiffy))]
            options += _mask(mask, six=words[1].startswith("["))
        if "ops" in flags:
            options.append("-o")
        lines.append(" ".join(options))
    return "".join(f"{line}\n" for line in lines)


def _mask(text: str, *, six: bool) -> list[str]:
    """Return the option for the mask of clients; none for the default, which is a single address.

    For IPv6 it is a prefix length, which the kernel prints after ``ntohl``.
    """
    value = int(text, 16)
    if not six:
        return [] if value == _WHOLE else ["-M", str(IPv4Address(value))]
    length = value if value <= _LENGTH else int.from_bytes(value.to_bytes(4, "little"), "big")
    return [] if length == _LENGTH else ["-M", str(length)]


def _place(text: str) -> str:
    """Return an address and a port in hexadecimal as ipvsadm prints them."""
    host, _, port = text.rpartition(":")
    if host.startswith("["):
        return f"[{IPv6Address(host[1:-1])}]:{int(port, 16)}"
    return f"{IPv4Address(int(host, 16))}:{int(port, 16)}"
