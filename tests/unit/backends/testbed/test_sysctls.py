"""A node's file may come from anywhere, and root applies its sysctls."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.node import Interface, Node
from backends.testbed import sysctls
from translate.errors import MachineError


@pytest.mark.parametrize(
    "name",
    [
        "net/../kernel/core_pattern",
        "net.ipv4/../../kernel/core_pattern",
        "net/./../kernel/core_pattern",
        "kernel.core_pattern",
        "/kernel/core_pattern",
        "net//ipv4",
        "net.ipv4.\0",
        "net.",
        "",
    ],
)
def test_a_name_that_leads_out_of_net_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(Path, "write_text", lambda self, text: written.append(str(self)))
    with pytest.raises(MachineError, match="only net"):
        sysctls.set_node_sysctls(Node((Interface("a"),), (), {name: "1"}))
    assert all(one.startswith("/proc/sys/net/") and ".." not in one for one in written)
