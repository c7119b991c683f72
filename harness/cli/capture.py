"""``nfparity capture``: a snapshot of this node."""

from __future__ import annotations

import argparse

from harness.capture.errors import MACHINE, CaptureError
from harness.capture.program import configure
from harness.capture.program import run as capture
from translate.errors import InputError, MachineError

__all__ = ["configure", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot."""
    try:
        return capture(arguments)
    except CaptureError as e:
        raise (MachineError if e.status == MACHINE else InputError)(str(e)) from e
