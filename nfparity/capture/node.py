"""Capture of all files of a snapshot."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from harness.files.errors import MACHINE, CaptureError
from nfparity.capture.expressions import read_expressions
from nfparity.capture.ipvs import read_ipvs
from nfparity.capture.modules import read_modules
from nfparity.capture.network import read_network
from nfparity.capture.rules import Rules
from nfparity.capture.sysctls import read_switches
from nfparity.capture.tools import Notes, Tools

__all__ = ["FORMAT", "capture_node"]

FORMAT = 1
"""The version of the format, incremented when the meaning of a file changes."""


def capture_node(
    *,
    now: float,
    path: str | None = None,
    proc: Path = Path("/proc"),
    sys: Path = Path("/sys"),
    lib: Path = Path("/lib"),
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files of a snapshot of this network namespace, and the notes about it.

    ``now`` is the time, ``path`` the search path of tools. Raises CaptureError if no rules can be read.
    """
    notes = Notes()
    tools = Tools(notes, path)
    rules = Rules(tools, notes, proc)
    rules.read()
    files = {**rules.files, **read_network(tools, notes, sys)}
    if rules.unread and not rules.files and "nft.json" not in files:
        why = "; ".join(notes.lines)
        raise CaptureError(f"no rules can be read here (as root, with iptables?): {why}", MACHINE)
    virtual = read_ipvs(tools, notes, proc)
    if virtual is not None:
        files["ipvs-save"] = virtual
    files["sysctl.json"] = _text(read_switches(proc))
    node = os.uname()
    modules = read_modules(node.release, proc=proc, lib=lib)
    expressions = read_expressions(tools, node.release, proc=proc, lib=lib)
    files["meta.json"] = _text(
        {
            "format": FORMAT,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "hostname": node.nodename,
            "kernel": {"release": node.release, "version": node.version, "machine": node.machine},
            "tools": tools.versions,
            "stacks": rules.stacks,
            **({} if modules is None else {"modules": modules}),
            **({} if expressions is None else {"expressions": expressions}),
            "anonymised": False,
            "notes": notes.lines,
        }
    )
    return files, tuple(notes.lines)


def _text(data: object) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
