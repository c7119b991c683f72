"""Trials of nftables expressions; scripts stand in for nft and unshare."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from nfparity.capture.expressions import read_expressions
from nfparity.capture.modules import read_available
from nfparity.capture.tools import Notes, Tools

NFT = """#!/bin/sh
case "$1" in --version) echo v1; exit;; esac
text=$(cat)
echo "$@ $(echo "$text" | grep -c "^table") $(echo "$text" | grep -c "hook")" >> {log}
case "$text" in *{refused}*) echo "/dev/stdin:1:2-3: Error: Could not process rule: {why}" >&2; exit 1;; esac
"""
UNSHARE = """#!/bin/sh
case "$1" in --version) echo 2; exit;; esac
[ {permitted} = yes ] || exit 1
shift
exec "$@"
"""


class Node:
    """A node of files; ``kernel`` are the modules that are loaded, or None for a kernel without modules."""

    def __init__(self, root: Path, *, kernel: tuple[str, ...] | None = None, permitted: bool = True) -> None:
        self.root = root
        self.log = root / "log"
        self.proc, self.lib = root / "proc", root / "lib"
        (self.proc / "sys/kernel").mkdir(parents=True)
        if kernel is not None:
            (self.proc / "modules").write_text("".join(f"{name} 1 0 - Live 0x0\n" for name in kernel))
        self.tool("unshare", UNSHARE.format(permitted="yes" if permitted else "no"))
        self.refuse("nothing")

    def tool(self, name: str, text: str) -> None:
        file = self.root / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def refuse(self, words: str, why: str = "No such file or directory") -> None:
        self.tool("nft", NFT.format(log=self.log, refused=f'"{words}"', why=why))

    def read(self) -> dict[str, Any]:
        tools = Tools(Notes(), f"{self.root}:/usr/bin:/bin")
        data = read_expressions(tools, "6.1", proc=self.proc, lib=self.lib)
        assert data is not None
        return dict(json.loads(json.dumps(data)))

    @property
    def transactions(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def test_a_kernel_without_modules_is_asked_for_all_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    data = node.read()
    assert data["own namespace"]
    assert {"nf_tables", "nft_ct", "nft_masq", "nft_fib", "nft_fib_ipv6"} <= set(data["accepted"])
    assert (data["refused"], data["not tried"]) == ({}, [])
    assert len(node.transactions) == 1


def test_what_is_refused_is_found_one_by_one(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.refuse("queue num")
    data = node.read()
    assert data["refused"] == {"nft_queue": "Could not process rule: No such file or directory"}
    assert "nft_queue" not in data["accepted"]
    assert "nft_ct" in data["accepted"]


@pytest.mark.parametrize("why", ["Operation not permitted", "Cannot allocate memory", "syntax error"])
def test_other_faults_say_nothing_about_the_kernel(why: str, tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.refuse("queue num", why)
    data = node.read()
    assert data["refused"] == {}
    assert data["not tried"] == ["nft_queue"]


def test_no_module_is_loaded(tmp_path: Path) -> None:
    node = Node(tmp_path, kernel=("nf_tables", "nft_numgen", "nft_log"))
    data = node.read()
    assert data["accepted"] == ["nf_tables", "nft_numgen"]  # the log also needs nf_log_syslog
    assert {"nft_ct", "nft_log", "nft_fib_ipv4"} <= set(data["not tried"])
    folder = tmp_path / "lib/modules/6.1"
    folder.mkdir(parents=True)
    (folder / "modules.builtin").write_text("kernel/net/netfilter/nf_log_syslog.ko\n")
    assert "nft_log" in node.read()["accepted"]


def test_without_nf_tables_nothing_is_asked(tmp_path: Path) -> None:
    node = Node(tmp_path, kernel=("xt_mark", "nft_numgen"))
    data = node.read()
    assert data["accepted"] == []
    assert node.transactions == []


def test_without_a_namespace_only_what_has_no_effect_is_checked(tmp_path: Path) -> None:
    node = Node(tmp_path, permitted=False)
    data = node.read()
    assert not data["own namespace"]
    assert {"nft_numgen", "nft_log", "nft_fib_ipv4"} <= set(data["accepted"])
    effects = {"nft_ct", "nft_nat", "nft_masq", "nft_redir", "nft_chain_nat", "nft_connlimit"}
    assert effects | {"nft_tproxy", "nft_synproxy", "nft_flow_offload"} == set(data["not tried"])
    (transaction,) = node.transactions
    assert transaction.startswith("--check -f - ")
    assert transaction.endswith(" 0")  # no chain has a hook


def test_without_nft_nothing_is_known(tmp_path: Path) -> None:
    assert read_expressions(Tools(Notes(), str(tmp_path)), "6.1", proc=tmp_path, lib=tmp_path) is None


def test_modules_that_need_no_loading(tmp_path: Path) -> None:
    assert read_available("6.1", proc=tmp_path, lib=tmp_path) is None
    (tmp_path / "modules").write_text("xt_mark 16384 1 - Live 0x0\n")
    assert read_available("6.1", proc=tmp_path, lib=tmp_path) == frozenset({"xt_mark"})
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/modules_disabled").write_text("1\n")
    assert read_available("6.1", proc=tmp_path, lib=tmp_path) is None
