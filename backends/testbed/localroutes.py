"""Waits for the host routes of IPv6 addresses."""

from __future__ import annotations

import time
from collections.abc import Iterable
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["wait_for_local_routes"]

_ROUTES: Final = Path("/proc/thread-self/net/ipv6_route")
_RTF_LOCAL: Final = 0x80000000
_PATIENCE: Final = 30.0
"""The greatest time to wait, in seconds. The kernel needs milliseconds, more where it is busy."""


def wait_for_local_routes(addresses: Iterable[int]) -> None:
    """Return when each IPv6 address of this network namespace has its host route.

    A worker of the kernel inserts the route after the address has been added, also without duplicate address
    detection (``addrconf_dad_start``). Until then, packets to the address are forwarded. Raises MachineError
    if a route does not appear.
    """
    missing = set(addresses)
    end = time.monotonic() + _PATIENCE
    while missing:
        routes = (line.split() for line in _ROUTES.read_text().splitlines())
        missing -= {int(route[0], 16) for route in routes if int(route[8], 16) & _RTF_LOCAL}
        if missing and time.monotonic() > end:
            raise MachineError(
                f"the kernel has not added the host route of its address {IPv6Address(min(missing))}"
            )
        time.sleep(0.001 if missing else 0)
