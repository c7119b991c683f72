"""Overview of this machine: its iptables rules, and the commands that are of use for them.

Printed by ``nfparity`` without arguments. Nothing is changed: the rules are read as a capture reads them,
which creates no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from nfparity.capture.rules import RULE, Rules
from nfparity.capture.tools import Notes, Tools

__all__ = ["overview", "read_rules"]


def read_rules() -> Rules:
    """Return the rules of this network namespace."""
    notes = Notes()
    rules = Rules(Tools(notes), notes, Path("/proc"))
    rules.read()
    return rules


def overview(files: Mapping[str, bytes], unread: int, *, root: bool) -> Iterator[str]:
    """Yield the lines. ``files`` and ``unread`` are those of :class:`~nfparity.capture.rules.Rules`."""
    counts = {name: len(RULE.findall(text)) for name, text in files.items()}
    present = {name: count for name, count in counts.items() if count}
    yield "iptables rules of this network namespace:"
    for name, count in present.items():
        whose = ", with those of kube-proxy" if b":KUBE-SERVICES " in files[name] else ""
        yield f"  {name.removesuffix('-save')}: {count} rule{'s' if count != 1 else ''}{whose}"
    if unread:
        yield f"  some cannot be read{'' if root else ': run sudo nfparity'}"
    elif not present:
        yield "  none"
    sudo = "" if root else "sudo "
    yield ""
    if any(b":KUBE-SERVICES " in files[name] for name in present):
        yield "what kube-proxy's nftables mode would change here:"
        yield f"  {sudo}nfparity capture -o node.tar.gz && {sudo}nfparity assess node.tar.gz"
    if present:
        yield "the translation of these rules, tested with packets (nothing is changed):"
        yield f"  {sudo}nfparity migrate plan -o node.plan"
    else:
        yield "what kube-proxy's nftables mode would change on a node, from a snapshot of it:"
        yield "  nfparity capture -o node.tar.gz     # there"
        yield f"  {sudo}nfparity assess node.tar.gz"
    yield "the backends that can run here:"
    yield "  nfparity doctor"
    yield "all commands:"
    yield "  nfparity --help"
