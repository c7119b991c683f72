"""The availability of kernel backends on this machine, tested by loading rules."""

from __future__ import annotations

import os

from backends.model.contract import Availability
from backends.model.node import Address, Interface, Node
from backends.replay.loader import Loader
from backends.replay.session import open_session
from backends.testbed.command import find_tool
from translate.errors import NfparityError
from translate.ir import Family

__all__ = ["kernel_lacks"]

_NODE = Node((Interface("probe0", (Address(Family.IP, 0xC0000201, 24),)),))


def kernel_lacks(loader: Loader) -> Availability:
    """Return the reason why ``loader`` cannot load into a small node in a throwaway namespace, or None.

    Takes a fraction of a second, changes nothing, raises nothing.
    """
    if not os.path.exists("/dev/net/tun"):
        return Availability(False, "/dev/net/tun is missing (kernel module tun)")
    if find_tool("nft") is None:
        return Availability(False, "nft is not installed (Debian package nftables)")
    try:
        with open_session(_NODE, loader):
            return Availability(True)
    except NfparityError as e:
        return Availability(False, str(e))
    except OSError as e:
        return Availability(False, f"cannot start a process: {e.strerror}")
