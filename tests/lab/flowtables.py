"""The flowtables of this machine's kernel."""

from __future__ import annotations

from functools import cache
from typing import Final

from backends.replay.worker import Worker
from tests.lab.traffic.host import Start, Tool

__all__ = ["missing_flowtables"]

_PROBE: Final = """\
table ip probe {
	flowtable f {
		hook ingress priority 0
		devices = { lo }
	}
}
"""


@cache
def missing_flowtables() -> str | None:
    """Return the reason for which this kernel has no flowtable, or None. Needs root."""
    with Worker(Start("probe", {})) as probe:
        loaded = probe.ask(Tool(("nft", "-f", "-"), _PROBE))
    return "this kernel has no flowtables (CONFIG_NF_FLOW_TABLE)" if loaded.status else None
