"""``nfparity capture``: a snapshot of this node."""

from __future__ import annotations

import argparse

from harness.files.errors import MACHINE, CaptureError
from nfparity.capture.program import configure
from nfparity.capture.program import run as capture
from translate.errors import InputError, MachineError

__all__ = ["configure", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot."""
    try:
        return capture(arguments)
    except CaptureError as e:
        raise (MachineError if e.status == MACHINE else InputError)(str(e)) from e
