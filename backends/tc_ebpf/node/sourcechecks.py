"""Source address checks (IPv4), which the program does instead of the kernel.

A reply to a local packet has its source translated back at ingress, before the kernel routes it; netfilter
does so in INPUT, after the check. So the kernel is configured to accept any source, and the program checks
(``martian_source``). IPv6 has no such checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from backends.tc_ebpf.node.facts import SourceChecks
from translate.errors import MachineError

__all__ = ["TAKEN", "read_checks", "read_sysctl", "taken_sysctls", "write_sysctl"]

TAKEN: Final = ("rp_filter", "accept_local")
"""The sysctls of a device that restrict the sources of received packets, by the last part of their names."""

_NOTHING: Final[Mapping[tuple[str, str], str]] = {}
_CONF: Final = Path("/proc/sys/net/ipv4/conf")


def read_checks(
    devices: Iterable[str], saved: Mapping[tuple[str, str], str] = _NOTHING
) -> dict[str, SourceChecks]:
    """Return the effective checks of each device of the current network namespace.

    ``saved`` has the original values of sysctls that were changed for the program, by device and name.
    """

    def number(device: str, name: str) -> int:
        value = saved.get((device, name))
        return int(read_sysctl(device, name) if value is None else value)

    return {
        device: SourceChecks(
            rp_filter=max(number(device, "rp_filter"), number("all", "rp_filter")),
            accept_local=bool(number(device, "accept_local") or number("all", "accept_local")),
        )
        for device in devices
    }


def taken_sysctls(devices: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the sysctl values that the program needs, by device and sysctl."""
    values = {}
    for name in ("all", *devices):
        values[name, "rp_filter"] = "0"
        values[name, "accept_local"] = "1"
    # A packet made here and sent here by DNAT comes in on lo without a route attached.
    values["lo", "route_localnet"] = "1"
    return values


def read_sysctl(device: str, name: str) -> str:
    """Return the value of a device's sysctl. Raises MachineError."""
    try:
        return (_CONF / device / name).read_text().strip()
    except OSError as e:
        raise MachineError(f"cannot read {name} of {device}: {e.strerror}") from e


def write_sysctl(device: str, name: str, value: str) -> None:
    """Set a device's sysctl. Raises MachineError."""
    try:
        (_CONF / device / name).write_text(value)
    except OSError as e:
        raise MachineError(f"cannot set {name} of {device}: {e.strerror}") from e
