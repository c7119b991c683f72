"""The lists of ``xt_recent`` in this network namespace: read from ``/proc/net/xt_recent``, and filled.

A list exists as long as a rule of any table names it. Its file has a line for each address, with the times of
its last packets in jiffies. Writing ``+ADDRESS`` adds a packet at the present time
(``recent_mt_proc_write``). A time in the past cannot be written.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family, format_address, parse_address
from translate.passes.recents import CAPACITY

__all__ = ["Jiffies", "ListedAddress", "capacity", "fill_list", "is_list", "read_addresses", "read_list"]

_FOLDER: Final = Path("/proc/net/xt_recent")
_CAPACITY: Final = Path("/sys/module/xt_recent/parameters/ip_list_tot")
_TIMERS: Final = Path("/proc/timer_list")
_LINE: Final = re.compile(r"src=(\S+) ttl: \d+ last_seen: \d+ oldest_pkt: \d+ (\d+(?:, \d+)*)")
_COARSE: Final = 6
"""``CLOCK_MONOTONIC_COARSE``: its resolution is a jiffy."""
_WIDTH: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Jiffies:
    """The kernel's clock of ticks: its value now, and the ticks in a second."""

    now: int
    per_second: int

    @classmethod
    def read(cls) -> Self:
        """Return the clock now.

        Without ``/proc/timer_list``, which containers hide, the value is up to a second too large: the ticks
        begin at -300 s in 32 bits (``INITIAL_JIFFIES``), but some are lost before the clock runs.
        """
        per_second = round(1 / time.clock_getres(_COARSE))
        with suppress(OSError):
            text = _TIMERS.read_text()
            match = re.search(r"^jiffies: (\d+)$", text, re.MULTILINE)
            if match is not None:
                return cls(int(match[1]), per_second)
        return cls((1 << 32) + int((time.monotonic() - 300) * per_second), per_second)

    def age(self, stamp: int) -> float:
        """Return the seconds since a time; 0 for a time that is later than now."""
        ticks = (self.now - stamp) % _WIDTH
        return 0.0 if ticks >= _WIDTH // 2 else ticks / self.per_second


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """An address in a list. ``stamps`` are the times of its last packets in jiffies, in any order."""

    address: str
    stamps: tuple[int, ...]


def is_list(name: str) -> bool:
    """Return whether a rule of this namespace names the list."""
    return (_FOLDER / name).exists()


def read_list(name: str, family: Family) -> tuple[ListedAddress, ...]:
    """Return the addresses of one family in a list; none if there is no such list. Raises MachineError."""
    try:
        text = (_FOLDER / name).read_text()
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as e:
        raise MachineError(f"cannot read the list {name} of -m recent: {e}") from e
    return read_addresses(text, family)


def read_addresses(text: str, family: Family) -> tuple[ListedAddress, ...]:
    """Return the addresses of one family in the file of a list, which both families can share."""
    return tuple(
        ListedAddress(
            format_address(family, parse_address(family, match[1])), tuple(map(int, match[2].split(", ")))
        )
        for match in _LINE.finditer(text)
        if (":" in match[1]) is (family is Family.IP6)
    )


def fill_list(name: str, packets: Iterable[tuple[str, int]]) -> None:
    """Add addresses to a list, each with a number of packets at the present time. Raises MachineError."""
    try:
        file = os.open(_FOLDER / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for address, number in packets:
                for _ in range(number):
                    # The kernel accepts a write only at the beginning of the file.
                    os.lseek(file, 0, os.SEEK_SET)
                    os.write(file, f"+{address}".encode())
        finally:
            os.close(file)
    except (OSError, ValueError) as e:
        raise MachineError(f"cannot fill the list {name} of -m recent: {e}") from e


def capacity() -> int:
    """Return the number of addresses that a list holds before it forgets the oldest (``ip_list_tot``)."""
    try:
        return int(_CAPACITY.read_text())
    except (OSError, ValueError):
        return CAPACITY
