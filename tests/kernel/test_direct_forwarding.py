"""Packets that the tc program forwards itself, and those that it leaves to the stack.

A client, a node and pods with stacks of their own; the client asks with UDP and is told what came of it: an
answer, or the error that an ICMP message made of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.lab.traffic.host import Tool
from tests.lab.traffic.plan import PODS, UDP, all_rules, pod_address
from tests.lab.traffic.subjects import Load
from tests.lab.traffic.topology import Topology
from translate.ir import Family

ASK = """
import errno, socket, sys
ip6, address, port, limit, size, times, seconds = int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
said = set()
with socket.socket(socket.AF_INET6 if ip6 else socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(*((41, 16) if ip6 else (0, 2)), limit)  # unicast hops, TTL
    s.setsockopt(*((41, 23) if ip6 else (0, 10)), 2)  # find out the MTU: never fragment
    s.setsockopt(*((41, 25) if ip6 else (0, 11)), 1)  # say what ICMP said
    s.settimeout(seconds)
    s.connect((address, port))
    for number in range(times):
        try:
            s.send((b"%d " % number).ljust(size, b"x"))
            s.recv(65536)
            said.add("answer")
        except TimeoutError:
            said.add("silence")
        except OSError as e:
            said.add(errno.errorcode[e.errno])
print(*sorted(said))
"""

ANSWERED = ["answer"]
UNREACHABLE = {Family.IP: "EHOSTUNREACH", Family.IP6: "ENETUNREACH"}
"""The error for a packet to an unreachable route."""


@pytest.fixture(scope="module")
def network() -> Iterator[Topology]:
    require(TcEbpfBackend())
    with Topology(checksums="software") as topology:
        topology.sysctls(
            "node",
            **{
                f"net__{ip}__neigh__{pod}__{name}": value
                for ip in ("ipv4", "ipv6")
                for pod in PODS
                for name, value in (("retrans_time_ms", "100"), ("delay_first_probe_time", "1"))
            },
        )
        topology.ask("node", Load("tc-ebpf", all_rules()))
        yield topology


@pytest.fixture(params=Family)
def family(request: pytest.FixtureRequest) -> Family:
    chosen = request.param
    assert isinstance(chosen, Family)
    return chosen


def ask(
    network: Topology,
    family: Family,
    whom: str | None,
    *,
    limit: int = 64,
    size: int = 16,
    times: int = 1,
    seconds: int = 5,
) -> list[str]:
    """Return the answers that a client gets from a pod, an address, or the service, each once.

    It waits ``seconds`` for each: where no answer may come, fewer are enough.
    """
    address = pod_address(family, whom) if whom in PODS else whom or UDP.cluster_ip(family)
    port = UDP.pod_port if whom else UDP.port
    given = map(str, (int(family is Family.IP6), address, port, limit, size, times, seconds))
    said = network.ask("client", Tool((sys.executable, "-c", ASK, *given)))
    assert said.status == 0, said.err
    return said.out.split()


def forwarded_by_the_stack(network: Topology, family: Family) -> int:
    if family is Family.IP6:
        lines = network.ask("node", Tool(("cat", "/proc/net/snmp6"))).out.splitlines()
        return next(int(x.split()[1]) for x in lines if x.startswith("Ip6OutForwDatagrams"))
    lines = network.ask("node", Tool(("cat", "/proc/net/snmp"))).out.splitlines()
    names, values = (x.split() for x in lines if x.startswith("Ip:"))
    return int(values[names.index("ForwDatagrams")])


def meet(network: Topology, family: Family) -> None:
    """Have the node learn all hardware addresses."""
    for pod in PODS:
        assert ask(network, family, pod) == ANSWERED


def test_what_is_only_forwarded_does_not_pass_the_stack(network: Topology, family: Family) -> None:
    meet(network, family)
    before = forwarded_by_the_stack(network, family)
    assert ask(network, family, None, times=50) == ANSWERED
    assert ask(network, family, "pod1", limit=2) == ANSWERED
    assert forwarded_by_the_stack(network, family) == before


def test_a_packet_that_has_come_too_far_is_answered(network: Topology, family: Family) -> None:
    meet(network, family)
    assert ask(network, family, "pod1", limit=1) == ["EHOSTUNREACH"]
    assert ask(network, family, None, limit=1) == ["EHOSTUNREACH"]


def test_a_packet_that_is_too_large_for_the_way_is_answered(network: Topology, family: Family) -> None:
    meet(network, family)
    network.ip("node", "link set pod2 mtu 1300")
    try:
        assert ask(network, family, "pod2", size=1250 - 40) == ANSWERED
        assert ask(network, family, "pod2", size=1400, times=2) == ["EMSGSIZE"]
    finally:
        network.ip("node", "link set pod2 mtu 1500")


def test_a_way_that_is_gone_is_noticed_at_once(network: Topology, family: Family) -> None:
    meet(network, family)
    pod = pod_address(family, "pod1")
    there, nowhere = f"{pod} dev pod1", f"unreachable {pod} metric 1"
    network.ip("node", f"route add {nowhere}", f"route delete {there}")
    try:
        heard = ask(network, family, "pod1", times=2)
    finally:
        network.ip("node", f"route delete {nowhere}", f"route add {there}")
    # ip_error says it to nobody who was sent another error less than a second ago.
    assert set(heard) - {"silence"} == {UNREACHABLE[family]}
    assert ask(network, family, "pod1") == ANSWERED


def test_a_neighbour_that_does_not_answer_any_more(network: Topology, family: Family) -> None:
    """bpf_redirect_neigh makes the kernel ask again; then the stack says that nobody is there."""
    nobody = pod_address(family, "pod3") + "9"
    network.ip(
        "node",
        f"route add {nobody} dev pod3",
        f"neigh add {nobody} dev pod3 lladdr 02:00:00:00:44:44 nud stale",
    )
    before = forwarded_by_the_stack(network, family)
    assert ask(network, family, nobody, seconds=2) == ["silence"]
    assert forwarded_by_the_stack(network, family) == before
    assert ask(network, family, nobody) == ["EHOSTUNREACH"]


def test_a_device_that_is_down(network: Topology) -> None:
    """Its routes are gone: a packet takes the default route, back to the client, who is no router."""
    for family in Family:
        meet(network, family)
    network.ip("node", "link set pod2 down")
    for family in Family:
        assert ask(network, family, "pod2", seconds=1) == ["silence"]
