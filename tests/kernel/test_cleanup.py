"""Nothing stays behind, whichever way a replay ends.

A replay runs in a process of its own, which is then interrupted or killed in the middle. What the
node was made of is looked for from the outside: processes that hold its namespace, its devices,
the tables of the machine's own namespace, pinned programs, and files in the temporary folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.session import open_session
from backends.tc_ebpf import TcEbpfBackend
from backends.testbed.command import find_tool
from tests.kernel.helpers.availability import require
from translate.errors import MachineError

_ROOT = Path(__file__).resolve().parents[2]
_REPLAY = """
import itertools, sys
from pathlib import Path
from backends.model.flow import Flow, Send
from backends.replay.session import open_session
from backends.iptables.backend import IptablesLoader
from backends.model.node import node_from_json
from backends.model.packet import Packet
from translate.ir import Family

kind = Path("tests/corpus/rulesets/kind-node")
node = node_from_json((kind / "worker.json").read_text(), name="worker.json")
text = (kind / "rules.iptables-save").read_text()

def flows():
    for n in itertools.count():
        packet = Packet(family=Family.IP, src=0x0AF40005, dst=0x0A60000A, proto=17, sport=n % 60000, dport=53)
        yield Flow(id=str(n), steps=(Send(packet=packet, entry="pod5"),))

try:
    with open_session(node, IptablesLoader("iptables-legacy", text)) as session:
        for number, _ in enumerate(session.replay(flows())):
            if number == 500:
                print(session.pid, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def namespaces() -> dict[str, set[int]]:
    """Every network namespace that a process is in, and who."""
    found: dict[str, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.setdefault(os.readlink(entry / "ns" / "net"), set()).add(int(entry.name))
            except OSError:
                continue  # it ended meanwhile, or is a zombie
    return found


def machine() -> dict[str, object]:
    """Return the state of the machine that a replay could change."""
    nft = subprocess.run(
        (find_tool("nft") or "nft", "list", "tables"), capture_output=True, text=True, check=True
    )
    pinned = Path("/sys/fs/bpf")
    return {
        "devices": sorted(p.name for p in Path("/sys/class/net").iterdir()),
        "nft tables": nft.stdout,
        "pinned": sorted(map(str, pinned.rglob("*"))) if pinned.is_dir() else [],
        "named namespaces": sorted(map(str, Path("/run/netns").glob("*"))),
    }


def gone(namespace: str, seconds: float = 60.0) -> bool:
    """Wait until no process holds ``namespace``."""
    deadline = time.monotonic() + seconds
    while namespace in namespaces():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def replaying(tmp_path):
    """A replay in full swing: its process, the pid of the node's, and the node's namespace."""
    process = subprocess.Popen(
        (sys.executable, "-c", _REPLAY),
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.strip():
            _, err = process.communicate()
            pytest.fail(f"the replay did not start: {err}")
        child = int(line)
        namespace = os.readlink(f"/proc/{child}/ns/net")
        assert namespace != os.readlink("/proc/self/ns/net")
        yield process, child, namespace
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_in_the_middle_of_a_replay(replaying, tmp_path, number):
    before = machine()
    process, child, namespace = replaying
    assert namespaces()[namespace] == {child}
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert gone(namespace)
    assert machine() == before
    assert list(tmp_path.iterdir()) == []
    if number == signal.SIGINT:
        assert (process.returncode, out, err) == (130, "interrupted\n", "")
        assert not Path(f"/proc/{child}").exists()  # otherwise it is init's to reap
    else:
        assert process.returncode == -number


def test_ctrl_c_reaches_the_whole_terminal(replaying):
    # A terminal signals every process of its group; the node's process must leave that to its
    # parent instead of dying under it with a traceback.
    process, child, namespace = replaying
    os.kill(child, signal.SIGINT)
    time.sleep(0.1)
    assert process.poll() is None
    assert namespaces()[namespace] == {child}
    assert os.getsid(child) != os.getsid(process.pid)


def test_the_end_of_a_session(kind_node, kind_rules):
    before = machine()
    with open_session(kind_node, IptablesLoader("iptables-legacy", kind_rules)) as session:
        namespace = os.readlink(f"/proc/{session.pid}/ns/net")
        assert namespaces()[namespace] == {session.pid}
        assert machine() == before
    assert gone(namespace)
    assert machine() == before


def test_rules_that_are_refused_leave_nothing(kind_node):
    before = set(namespaces())
    with (
        pytest.raises(MachineError, match="Couldn't load target"),
        open_session(kind_node, IptablesLoader("iptables-legacy", "*filter\n-A INPUT -j NOWHERE\nCOMMIT\n")),
    ):
        pytest.fail("the rules were taken")
    assert all(gone(namespace) for namespace in set(namespaces()) - before)


def test_a_node_process_that_dies_is_reported(kind_node, kind_rules, flows):
    flow = flows.flow(flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5")
    with open_session(kind_node, IptablesLoader("iptables-legacy", kind_rules)) as session:
        os.kill(session.pid, signal.SIGKILL)
        replay = session.replay([flow])
        with pytest.raises(MachineError, match="ended by itself"):
            next(replay)


_TRAFFIC = """
import time
from tests.lab.traffic.plan import all_rules
from tests.lab.traffic.servers import ServeNames
from tests.lab.traffic.subjects import Load
from tests.lab.traffic.topology import Topology

with Topology() as topology:
    topology.ask("node", Load("tc-ebpf", all_rules()))
    topology.ask("pod1", ServeNames())
    topology.join("client")
    print(*(worker.pid for worker in topology.hosts.values()), flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(find_tool("dnsmasq") is None, reason="needs dnsmasq (Debian package dnsmasq-base)")
def test_clients_and_servers_that_are_killed(tmp_path):
    """Their namespaces go, with the programs in them and the pins of a dataplane that was meant to stay."""
    require(TcEbpfBackend())
    before = machine()
    process = subprocess.Popen(
        (sys.executable, "-c", _TRAFFIC),
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    mine = set()
    try:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        mine = {os.readlink(f"/proc/{pid}/ns/net") for pid in pids}
        assert len(mine) == len(pids) == 5
        assert machine() == before
    finally:
        process.kill()
        process.communicate()
    assert all(gone(namespace) for namespace in mine)
    assert machine() == before
