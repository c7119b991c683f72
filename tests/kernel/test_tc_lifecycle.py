"""A tc dataplane that stays: loaded, changed, replaced, refreshed and taken away."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bcc import import_bcc, provided_headers
from nfparity.tc import Installed
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcscene import (
    FILTER,
    FIRST,
    OTHER,
    SECOND,
    SERVICE,
    SERVICES,
    STREAM,
    Chat,
    Command,
    Say,
    Scene,
    Serve,
    rules_of,
)
from tests.lab.traffic.host import Host, Ip, Request
from translate.errors import MachineError
from translate.ir import Family

SIX = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 9 -j DROP\nCOMMIT\n"


@dataclass(frozen=True)
class LoadBroken(Request):
    """Loads a program that the verifier does not take; returns what is said, and the log that it names."""

    def run(self, host: Host) -> tuple[str, str]:
        rules = rules_of(FIRST)
        entry = "int nfparity_ingress(struct __sk_buff *skb)\n{\n"
        after = rules.output.after.replace(
            entry, entry + "\tif (((u8 *)(long)skb->data)[40]) return TC_ACT_SHOT;\n"
        )
        broken = replace(rules, output=replace(rules.output, after=after))
        with pytest.raises(MachineError) as caught:
            Installed(Family.IP).load(broken)
        said = str(caught.value)
        log = said.rpartition("the whole log is in ")[2].rstrip(")")
        return said, Path(log).read_text()


@dataclass(frozen=True)
class Foreign(Request):
    """Attaches a program of somebody else's, which counts packets and decides nothing; returns the counts."""

    def run(self, host: Host) -> None:
        text = (
            b"#include <uapi/linux/bpf.h>\n#include <uapi/linux/pkt_cls.h>\n"
            b'BPF_TABLE("array", u32, u64, seen, 1);\n'
            b"int other(struct __sk_buff *skb)\n{\n\tu32 zero = 0;\n\tu64 *n = seen.lookup(&zero);\n"
            b"\tif (n)\n\t\t*n += 1;\n\treturn TC_ACT_UNSPEC;\n}\n"
        )
        bcc = import_bcc()
        with provided_headers() as flags:
            program = host.kept["foreign"] = bcc.BPF(text=text, cflags=list(flags))
        bpfcall.pin(Path("/sys/fs/bpf/other"), program.load_func(b"other", bcc.BPF.SCHED_CLS).fd)


@dataclass(frozen=True)
class ForeignCount(Request):
    def run(self, host: Host) -> int:
        return int(host.kept["foreign"][b"seen"][ctypes.c_int(0)].value)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack, Foreign)


def test_it_stays_and_goes_without_a_trace(scene: Scene) -> None:
    assert scene.client.ask(Say("early", "nobody", SERVICE, seconds=0.3)) is None
    assert scene.load(FIRST) == "loaded"
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    assert scene.client.ask(Say("b", "stream", STREAM, "tcp")) == "10.2.0.2 stream"
    status = json.loads(scene.run("nfparity", "tc", "status", "--format", "json"))["ip"]
    assert status == scene.status()["ip"]
    assert status["open"]
    assert [d["device"] for d in status["devices"]] == ["lo", "c0", "s0"]
    assert all(d["ingress"] and d["egress"] and not d["before"] for d in status["devices"])
    assert status["tables"]["conns"]["entries"] == 2
    listed = scene.run("nfparity", "tc", "connections").splitlines()
    assert len(listed) == 2
    stream = next(line for line in listed if line.startswith("tcp"))
    assert " ESTABLISHED src=10.1.0.2 dst=10.96.0.10 " in stream
    assert " src=10.2.0.2 dst=10.1.0.2 sport=8000 " in stream
    assert "[ASSURED] mark=0" in stream
    datagrams = next(line for line in listed if line.startswith("udp"))
    assert " dst=10.2.0.1 sport=5300 " in datagrams  # masqueraded
    assert "ip: unloaded" in scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    assert "ip: nothing was loaded" in scene.run("nfparity", "tc", "unload")
    assert "no rules are loaded" in scene.run("nfparity", "tc", "status", status=3)


def test_changed_and_replaced_under_connections(scene: Scene) -> None:
    scene.load(FIRST)
    assert scene.client.ask(Say("udp", "one", SERVICE)) == "10.2.0.2 one"
    assert scene.client.ask(Say("tcp", "one", STREAM, "tcp")) == "10.2.0.2 one"
    programs = scene.status()["ip"]["devices"]
    assert scene.load(FIRST) == "unchanged"
    assert scene.load(SECOND) == "changed"
    assert scene.status()["ip"]["devices"] == programs
    assert scene.client.ask(Say("udp", "two", SERVICE)) == "10.2.0.2 two"
    assert scene.client.ask(Say("tcp", "two", STREAM, "tcp")) == "10.2.0.2 two"
    assert scene.client.ask(Say("new", "new", SERVICE)) == "10.2.0.3 new"
    assert scene.load(SECOND, "--no-fast-path") == "unchanged"
    assert not scene.status()["ip"]["direct"]
    assert scene.client.ask(Say("udp", "by the stack", SERVICE)) == "10.2.0.2 by the stack"
    assert scene.load(SECOND + FILTER) == "replaced"
    assert {d["device"] for d in scene.status()["ip"]["devices"]} == {"lo", "c0", "s0"}
    assert all(d not in programs for d in scene.status()["ip"]["devices"])
    assert scene.client.ask(Say("udp", "three", SERVICE)) == "10.2.0.2 three"
    assert scene.client.ask(Say("tcp", "three", STREAM, "tcp")) == "10.2.0.2 three"
    assert scene.client.ask(Say("other", "four", OTHER)) == "10.2.0.3 four"
    assert scene.run("ls", "/sys/fs/bpf/nfparity/" + _inode(scene) + "/ip").split() == ["2", "state"]
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before


def test_no_packet_is_lost_under_changes_and_replacements(scene: Scene) -> None:
    scene.load(FIRST)
    scene.client.ask(Chat(SERVICE))
    for text, outcome in ((SECOND, "changed"), (SECOND + FILTER, "replaced"), (FIRST, "replaced")):
        assert scene.load(text) == outcome
    scene.run("nfparity", "tc", "refresh")
    asked, answered = scene.client.ask(Chat())
    assert asked == answered
    assert asked > 1000


def _inode(scene: Scene) -> str:
    return str(os.stat(f"/proc/{scene.node.pid}/ns/net").st_ino)


def test_beside_other_programs_and_the_other_family(scene: Scene) -> None:
    scene.node.ask(Foreign())
    scene.run("tc", "qdisc", "add", "dev", "c0", "clsact")
    for preference in ("7", "50000"):
        words = ("bpf", "direct-action", "object-pinned", "/sys/fs/bpf/other")
        scene.run(
            "tc", "filter", "add", "dev", "c0", "ingress", "pref", preference, "protocol", "all", *words
        )
    before = scene.remains()
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-"), FIRST))
    assert "c0: the bpf filter" in done.err
    assert "runs first at ingress" in done.err
    assert scene.load(SIX, "--family", "ip6") == "loaded"
    seen = scene.node.ask(ForeignCount())
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    assert scene.node.ask(ForeignCount()) > seen
    status = scene.status()
    assert [b["preference"] for d in status["ip"]["devices"] for b in d["before"]] == [7]
    assert set(status) == {"ip", "ip6"}
    assert scene.load(SIX.replace("tcp", "udp"), "--family", "ip6") == "replaced"
    assert scene.client.ask(Say("a", "again", SERVICE)) == "10.2.0.2 again"
    scene.run("nfparity", "tc", "unload", "--family", "ip")
    assert set(scene.status()) == {"ip6"}
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == before


def test_devices_that_come_and_go(scene: Scene) -> None:
    scene.load(FIRST)
    scene.node.ask(Ip("link add n0 type veth peer name n1\nlink add br0 type bridge\nlink set br0 up\n"))
    assert set(
        scene.run("nfparity", "tc", "refresh").removeprefix("ip: attached to ").strip().split(", ")
    ) == {
        "br0",
        "n0",
        "n1",
    }
    scene.node.ask(Ip("link set n0 master br0\n"))
    assert scene.run("nfparity", "tc", "refresh") == "ip: no new devices\n"
    attached = {d["device"] for d in scene.status()["ip"]["devices"]}
    assert attached == {"lo", "c0", "s0", "br0", "n1"}  # a bridge's packets are its own, not its ports'
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    scene.node.ask(Ip("link delete n1\nlink delete br0\n"))
    scene.run("nfparity", "tc", "refresh")
    assert scene.status()["ip"]["tables"]["devices"]["entries"] == 3
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before


def test_another_number_of_connections(scene: Scene) -> None:
    assert scene.load(FIRST, "--connections", "1000") == "loaded"
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-", "--connections", "2000"), SECOND))
    assert done.status == 2
    assert "has room for 1000 connections, not 2000; --flush drops" in done.err
    assert scene.load(SECOND) == "changed"
    tables = scene.status()["ip"]["tables"]
    assert tables["conns"] == {"entries": 1, "max_entries": 1000}
    assert scene.status()["ip"]["counters"]["entered"] == 1
    assert "counter  entered: 1 (connections entered)" in scene.run("nfparity", "tc", "status")
    assert scene.load(SECOND, "--connections", "2000", "--flush") == "replaced"
    assert scene.status()["ip"]["tables"]["conns"] == {"entries": 0, "max_entries": 2000}
    assert scene.client.ask(Say("b", "hello", SERVICE)) == "10.2.0.3 hello"
    scene.run("nfparity", "tc", "load", "-", "--connections", "0", text=FIRST, status=2)


def test_through_a_tunnel(scene: Scene) -> None:
    """Packets into a tunnel are forwarded; the encapsulated packet is a local one."""
    tunnel = (
        "link add x0 type vxlan id 5 dstport 4789 local {0} remote {1} dev {2}\n"
        "address add {3}/24 dev x0\nlink set x0 up\n"
    )
    scene.node.ask(Ip("route add 10.96.0.0/16 via 10.1.0.2\n"))  # which leads elsewhere
    scene.node.ask(Ip(tunnel.format("10.2.0.1", "10.2.0.2", "s0", "10.3.0.1")))
    scene.server.ask(Ip(tunnel.format("10.2.0.2", "10.2.0.1", "eth0", "10.3.0.2")))
    scene.server.ask(Serve(("10.3.0.2",)))
    scene.load(SERVICES.format(server="10.3.0.2"))
    assert scene.client.ask(Say("udp", "hello", SERVICE)) == "10.3.0.2 hello"
    assert scene.client.ask(Say("tcp", "hello", STREAM, "tcp")) == "10.3.0.2 hello"
    assert scene.node.ask(Say("own", "hello", SERVICE)) == "10.3.0.2 hello"
    assert " dst=10.2.0.2 sport=" in scene.run("nfparity", "tc", "connections")  # the tunnel's own


def test_what_cannot_be_loaded_leaves_nothing(scene: Scene) -> None:
    said, log = scene.node.ask(LoadBroken())
    assert "nfparity_ingress: the verifier refuses it: invalid access to packet, off=40 size=1" in said
    assert "skb->data)[40]" in said
    assert len(said.splitlines()) <= 5
    assert "processed " in log
    assert scene.remains() == scene.before
    scene.node.ask(Ip("tuntap add t0 mode tun\nlink set t0 up\n"))
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-"), FIRST))
    assert done.status == 3
    assert "device t0 carries packets without an Ethernet header" in done.err
    scene.node.ask(Ip("link delete t0\n"))
    assert scene.remains() == scene.before
