"""Empties sets of nftables by one prepared netlink transaction.

Sets that packets fill are emptied between any two runs. libnftables would list all tables and sets for each
command, which takes a hundred times as long as the kernel's work.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Container
from typing import Final

from backends.testbed.netlink import Netlink, attribute
from translate.errors import MachineError

__all__ = ["SetEmptier", "only_empties_sets"]

_NETLINK_NETFILTER: Final = 12
_BEGIN, _END = 16, 17
"""The messages that enclose a transaction (``NFNL_MSG_BATCH_BEGIN``, ``NFNL_MSG_BATCH_END``)."""
_SUBSYSTEM: Final = 10
"""The netlink subsystem of nf_tables (``NFNL_SUBSYS_NFTABLES``)."""
_DELETE_ELEMENTS: Final = _SUBSYSTEM << 8 | 14
"""The message ``NFT_MSG_DELSETELEM``; without elements it empties the set (``nf_tables_delsetelem``)."""
_TABLE, _SET = 1, 2
"""The attributes ``NFTA_SET_ELEM_LIST_TABLE`` and ``NFTA_SET_ELEM_LIST_SET``."""
_FAMILIES: Final = {"inet": 1, "ip": 2, "arp": 3, "netdev": 5, "bridge": 7, "ip6": 10}
_COMMAND: Final = re.compile(r'flush set (\w+) "?([^\s"]+)"? "?([^\s"]+)"?')
_AT_ONCE: Final = 1000
"""The most sets of one transaction: far fewer than fit into a socket's buffer."""


def only_empties_sets(text: str) -> bool:
    """Return whether every line of ``text`` is a ``flush set`` command."""
    return all(_COMMAND.fullmatch(line) for line in text.splitlines())


class SetEmptier:
    """Runs ``flush set`` commands, one on each line of ``text``, in the current network namespace."""

    def __init__(self, text: str) -> None:
        """Open a socket. :func:`only_empties_sets` must be true of ``text``."""
        matches = map(_COMMAND.fullmatch, text.splitlines())
        sets = [(match[1], match[2], match[3]) for match in matches if match is not None]
        self._messages = {names: (_DELETE_ELEMENTS, _elements(*names)) for names in sets}
        self._netlink = Netlink(_NETLINK_NETFILTER)

    def empty(self, only: Container[tuple[str, str, str]] | None = None) -> None:
        """Empty the sets, or ``only`` those with these families, tables and names.

        For each set, the kernel searches the list of all sets of the table. Raises MachineError with the
        kernel's reason.
        """
        messages = [message for names, message in self._messages.items() if only is None or names in only]
        for i in range(0, len(messages), _AT_ONCE):
            batch = messages[i : i + _AT_ONCE]
            number = self._netlink.transact((_BEGIN, _head(0)), batch, (_END, _head(0)))
            if number:
                raise MachineError(
                    f"the kernel does not empty the sets that packets fill: {os.strerror(number)}"
                )

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()


def _head(family: int) -> bytes:
    return struct.pack("=BB", family, 0) + struct.pack(">H", _SUBSYSTEM)


def _elements(family: str, table: str, name: str) -> bytes:
    attributes = ((_TABLE, table), (_SET, name))
    return struct.pack("=BBH", _FAMILIES[family], 0, 0) + b"".join(
        attribute(kind, text.encode() + b"\0") for kind, text in attributes
    )
