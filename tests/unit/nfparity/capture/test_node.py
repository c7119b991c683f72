"""A node as capture reads it, with tools that are scripts and a ``/proc`` that is a folder."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from harness.files.errors import CaptureError
from nfparity.capture.node import capture_node

RULES = "*filter\n:INPUT ACCEPT [0:0]\n[7:420] -A INPUT -j {}\nCOMMIT\n"
EMPTY = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"


class Machine:
    """A node of files."""

    def __init__(self, root: Path) -> None:
        self.bin, self.proc, self.sys, self.lib = (root / name for name in ("bin", "proc", "sys", "lib"))
        for folder in (self.bin, self.proc / "net", self.proc / "sys", self.sys / "module"):
            folder.mkdir(parents=True)
        self.ran = root / "ran"
        self.ran.touch()

    def tool(self, name: str, output: str, *, version: str = "1", status: int = 0) -> None:
        file = self.bin / name
        (self.bin.parent / f"{name}.out").write_text(output)
        file.write_text(
            f'#!/bin/sh\ncase "$1" in --version|-V) echo "{version}"; exit;; esac\n'
            f'echo "{name} $@" >> {self.ran}\n/bin/cat {self.bin.parent}/{name}.out\nexit {status}\n'
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def tables(self, *names: str, six: bool = False) -> None:
        file = self.proc / "net" / ("ip6_tables_names" if six else "ip_tables_names")
        file.write_text("".join(f"{n}\n" for n in names))

    def captured(self) -> tuple[dict[str, bytes], tuple[str, ...]]:
        return capture_node(now=0.0, path=str(self.bin), proc=self.proc, sys=self.sys, lib=self.lib)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def text_of(files: dict[str, bytes], name: str) -> str:
    return files[name].decode()


def test_rules_of_one_stack_are_the_rules(machine: Machine) -> None:
    machine.tables("filter")
    machine.tool("iptables-legacy-save", EMPTY)
    machine.tool("iptables-nft-save", RULES.format("DROP"))
    files, _ = machine.captured()
    assert {n for n in files if n.startswith("ip") and n.endswith("save")} == {"iptables-save"}
    assert "-j DROP" in text_of(files, "iptables-save")
    assert json.loads(files["meta.json"])["stacks"] == {"ip": "nft"}
    assert "iptables-nft-save -c\n" in machine.ran.read_text()


def test_rules_of_both_stacks_are_kept_apart_and_told(machine: Machine) -> None:
    machine.tables("filter")
    machine.tool("iptables-legacy-save", RULES.format("DROP"))
    machine.tool("iptables-nft-save", RULES.format("ACCEPT"))
    files, notes = machine.captured()
    assert "-j DROP" in text_of(files, "iptables-legacy-save")
    assert "-j ACCEPT" in text_of(files, "iptables-nft-save")
    assert "iptables-save" not in files
    assert json.loads(files["meta.json"])["stacks"] == {"ip": "both"}
    assert "both iptables-legacy and iptables-nft have rules, and packets pass both" in notes


@pytest.mark.parametrize("loaded", [False, True])
def test_legacy_tools_are_not_asked_where_there_are_no_tables(machine: Machine, loaded: bool) -> None:
    if loaded:
        machine.tables()
    machine.tool("iptables-legacy-save", RULES.format("DROP"))
    machine.tool("iptables-nft-save", "")
    machine.tool("ip6tables-nft-save", EMPTY)
    files, _ = machine.captured()
    assert "legacy" not in machine.ran.read_text()
    assert "iptables-save" not in files


@pytest.mark.parametrize(
    ("version", "stack"),
    [("iptables-save v1.8.9 (nf_tables)", "nft"), ("iptables-save v1.8.9 (legacy)", "legacy"),
     ("iptables-save v1.6.1", "legacy")],
)  # fmt: skip
def test_plain_iptables_save_is_what_its_version_says(machine: Machine, version: str, stack: str) -> None:
    machine.tables("filter")
    machine.tool("iptables-save", RULES.format("DROP"), version=version)
    files, _ = machine.captured()
    meta = json.loads(files["meta.json"])
    assert meta["stacks"] == {"ip": stack}
    assert meta["tools"]["iptables-save"] == version


def test_tables_of_legacy_without_a_tool_are_told(machine: Machine) -> None:
    machine.tables("nat", "filter")
    machine.tool("iptables-nft-save", RULES.format("DROP"))
    _, notes = machine.captured()
    assert "iptables-legacy has tables (nat, filter), but no tool to read them" in notes


def test_a_table_that_the_tool_cannot_show_is_told(machine: Machine) -> None:
    shown = "# Table `nat' is incompatible, use 'nft' tool.\n" + EMPTY
    machine.tool("iptables-nft-save", shown)
    _, notes = machine.captured()
    assert "iptables-nft-save cannot show table nat, written by another tool; see nft.json" in notes


def test_the_rest_of_a_node(machine: Machine) -> None:
    machine.tool("iptables-nft-save", EMPTY)
    machine.tool("ip", '[{"ifname": "lo"}]')
    machine.tool("nft", '{"nftables": []}')
    machine.tool("ipset", "create a hash:ip\n")
    (machine.sys / "module" / "ip_set").mkdir()
    conf = machine.proc / "sys/net/ipv4/conf/eth0.7"
    conf.mkdir(parents=True)
    (conf / "rp_filter").write_text("2\n")
    (machine.proc / "sys/net/ipv4/ip_forward").write_text("1\n")
    files, _ = machine.captured()
    assert json.loads(files["addr.json"]) == json.loads(files["rule6.json"]) == [{"ifname": "lo"}]
    assert text_of(files, "ipset-save") == "create a hash:ip\n"
    assert json.loads(files["nft.json"]) == {"nftables": []}
    assert json.loads(files["sysctl.json"]) == {
        "net.ipv4.conf.eth0/7.rp_filter": "2",
        "net.ipv4.ip_forward": "1",
    }
    assert json.loads(files["meta.json"])["time"] == "1970-01-01T00:00:00Z"
    asked = machine.ran.read_text().splitlines()
    assert "ip -j -6 route show table all" in asked
    assert not [
        line for line in asked if any(word in line for word in (" add ", " flush", " del", "restore"))
    ]


def test_modules_of_netfilter_are_kept(machine: Machine) -> None:
    machine.tool("iptables-nft-save", EMPTY)
    machine.tool("ip", "[]")
    assert "modules" not in json.loads(machine.captured()[0]["meta.json"])
    folder = machine.lib / "modules" / os.uname().release
    folder.mkdir(parents=True)
    (folder / "modules.order").write_text("kernel/net/netfilter/xt_mark.ko.xz\nkernel/drivers/net/tun.ko\n")
    (folder / "modules.builtin").write_text("kernel/net/netfilter/nf_tables.ko\n")
    (machine.proc / "modules").write_text("ip_set 61440 0 - Live 0x0\nxt_mark 16384 1 - Live 0x0\n")
    meta = json.loads(machine.captured()[0]["meta.json"])
    assert meta["modules"] == ["ip_set", "nf_tables", "xt_mark"]


def test_what_is_missing_is_told(machine: Machine) -> None:
    machine.tool("iptables-nft-save", EMPTY)
    machine.tool("ip", "1: lo: <LOOPBACK>\n")
    (machine.sys / "module" / "ip_set").mkdir()
    files, notes = machine.captured()
    assert "addr.json" not in files
    assert "ip -j -d addr prints no JSON; it is too old, or built without JSON" in notes
    assert {"nft is missing: no nftables rules", "ipset is missing: no ipsets"} <= set(notes)
    assert json.loads(files["meta.json"])["notes"] == list(notes)


def test_a_tool_that_fails_is_told_with_what_it_said(machine: Machine) -> None:
    machine.tool("iptables-nft-save", EMPTY, status=4)
    machine.tool("ip6tables-nft-save", EMPTY)
    files, notes = machine.captured()
    assert "iptables-nft-save -c failed: exit status 4" in notes
    assert "iptables-save" not in files


def test_sets_are_not_asked_for_where_the_kernel_has_none(machine: Machine) -> None:
    machine.tool("iptables-nft-save", EMPTY)
    machine.tool("ipset", "create a hash:ip\n")
    files, _ = machine.captured()
    assert "ipset-save" not in files
    assert "ipset save" not in machine.ran.read_text()


def test_a_node_of_nftables_alone_is_captured(machine: Machine) -> None:
    machine.tool("nft", '{"nftables": []}')
    files, notes = machine.captured()
    assert "nft.json" in files
    assert {"iptables-nft-save is missing", "ip6tables-nft-save is missing"} <= set(notes)


def test_who_may_not_look_gets_no_snapshot(machine: Machine) -> None:
    for name in ("iptables-nft-save", "ip6tables-nft-save", "nft"):
        machine.tool(name, "", status=4)
    with pytest.raises(CaptureError, match="iptables-nft-save -c failed: exit status 4") as caught:
        machine.captured()
    assert caught.value.status == 3


def test_without_any_rules_there_is_no_snapshot(machine: Machine) -> None:
    for six in (False, True):
        machine.tables("filter", six=six)
    with pytest.raises(CaptureError, match="no rules can be read here") as caught:
        machine.captured()
    assert caught.value.status == 3
