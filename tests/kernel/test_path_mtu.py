"""``-j TCPMSS --clamp-mss-to-pmtu`` in the tc program and in iptables-legacy, for several MTU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import Server, StartWith, node_of
from tests.kernel.test_tc_segments import CLIENT, MSS, NOP, SERVER, whole
from tests.lab.unobservednode import UnobservedNode
from translate.bpf import emit
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

FAR = {Family.IP: "198.51.100.7", Family.IP6: "2001:db8:9::7"}
"""A source whose route is the default one."""
DEFAULT = {
    Family.IP: "route change default via 192.0.2.1 dev eth0",
    Family.IP6: "-6 route replace default via 2001:db8::1 dev eth0",
}
NEAR = {
    Family.IP: "route change 10.0.0.0/8 dev pod0",
    Family.IP6: "-6 route replace fd00::/48 dev pod0 metric 256",
}
SETTINGS = (
    (),
    ("link set eth0 mtu 1400",),
    ("link set pod0 mtu 1350",),
    ("link set pod0 mtu 9000",),
    ("link set eth0 mtu 9000", "link set pod0 mtu 9000"),
    ("{default} mtu 1320",),
    ("{default} mtu 1480", "{near} mtu 1290"),
    ("{default} mtu lock 1280",),
    ("link set eth0 mtu 1400", "{default} mtu 1450"),
)
"""Commands of ip."""


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


@dataclass(frozen=True)
class Configured(StartWith):
    """A node whose devices and routes are changed before the rules are loaded."""

    commands: tuple[str, ...]

    def __call__(self) -> Server:
        tap = UnobservedNode(self.node, self.loader.family)
        for command in self.commands:
            subprocess.run(("ip", *command.split()), check=True, capture_output=True)
        self.loader.load(tap)
        tap.apply_sysctls()
        return Server(tap, self.loader)


def left(loader: Callable[[], Loader], family: Family) -> list[str]:
    """The SYN packets that leave, with each setting."""
    found = []
    for setting in SETTINGS:
        words = {"default": DEFAULT[family], "near": NEAR[family]}
        commands = tuple(command.format(**words) for command in setting)
        with Worker(Configured(node_of(family), loader(), commands)) as worker:
            for source in (CLIENT[family], FAR[family]):
                for options in (MSS, MSS.replace("05b4", "ffff"), MSS.replace("05b4", "0400"), NOP * 4 + MSS):
                    for port in (80, 81):
                        packet = whole(family, source, SERVER[family], options, dport=port, data=b"data")
                        found += [one.hex() for one in worker.ask(("send", "pod0", [packet]))]
    return found


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_an_mss_is_that_of_both_routes(family: Family) -> None:
    syn = "-p tcp --tcp-flags SYN,RST SYN"
    text = "\n".join(
        (
            "*mangle",
            f"-A FORWARD {syn} --dport 80 -j TCPMSS --clamp-mss-to-pmtu",
            f"-A POSTROUTING {syn} --dport 81 -j TCPMSS --clamp-mss-to-pmtu",
            "COMMIT",
            "",
        )
    )
    variant = "iptables-legacy" if family is Family.IP else "ip6tables-legacy"
    expected = left(partial(IptablesLoader, variant, text, family), family)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    assert left(partial(TcEbpfLoader, program), family) == expected
    headers = 40 if family is Family.IP else 60
    sizes = {one[one.index("0204", 80) + 4 :][:4] for one in expected}
    assert {f"{mtu - headers:04x}" for mtu in (1280, 1290, 1320, 1350, 1400, 1500, 9000)} <= sizes
