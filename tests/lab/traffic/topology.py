"""The namespaces, joined by veth pairs: a client outside, the node, and its pods.

Every namespace belongs to a process that is killed when this one ends (:mod:`backends.replay.worker`), and
the pairs are made inside of them, so that nothing is left behind and no names collide.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final, Self

from backends.replay.worker import Worker
from tests.lab.traffic.clients import Connect
from tests.lab.traffic.host import ChecksumsInSoftware, Ip, Join, Request, Start, Sysctls
from tests.lab.traffic.plan import (
    PODS,
    UPLINK,
    client_batch,
    cluster,
    device_batch,
    node_batch,
    pod_batch,
)
from tests.lab.traffic.programs import Curl
from tests.lab.traffic.servers import Serve
from tests.lab.traffic.streams import BeginStreams
from tests.lab.traffic.subjects import Load
from translate.ir import Family

__all__ = ["Topology"]

_EVERYWHERE: Final = {
    # Otherwise inherited from the machine (net.core.devconf_inherit_init_net).
    **{f"net/ipv4/conf/{d}/rp_filter": "0" for d in ("all", "default")},
    **{f"net/ipv4/conf/{d}/send_redirects": "0" for d in ("all", "default")},
    **{f"net/ipv6/conf/{d}/accept_dad": "0" for d in ("all", "default")},
    **{f"net/ipv6/conf/{d}/accept_ra": "0" for d in ("all", "default")},
    **{f"net/ipv6/conf/{d}/disable_ipv6": "0" for d in ("all", "default", "lo")},
    # An address whose neighbour does not answer fails after three seconds anyway.
    "net/ipv4/icmp_ratelimit": "0",
    "net/ipv6/icmp/ratelimit": "0",
}
_OF_NODE: Final = {
    "net/ipv4/ip_forward": "1",
    "net/ipv6/conf/all/forwarding": "1",
    # kube-proxy's, for node ports at 127.0.0.1.
    "net/ipv4/conf/all/route_localnet": "1",
}
_OF_OTHERS: Final = {
    # Source ports of ordinary programs; the clients of :mod:`clients` choose lower ones.
    "net/ipv4/ip_local_port_range": "61000 65535",
}
_REQUESTS: Final[tuple[type[Request], ...]] = (Connect, BeginStreams, Curl, Load, Serve)


class Topology:
    """A client, a node and pods with servers. A context manager; ``hosts`` are their processes by name.

    ``requests`` are types of requests from modules of other packages, imported once for all hosts. With
    ``checksums`` "software", all hosts compute the checksums of the packets that they send, which veth pairs
    leave out otherwise. Raises MachineError where it cannot be built.
    """

    def __init__(self, *requests: type[Request], checksums: str = "offloaded") -> None:
        self.plan = cluster(Family.IP).node
        self.hosts: dict[str, Worker] = {}
        self._requests = (*_REQUESTS, *requests)
        self._software = checksums == "software"
        self._stack = ExitStack()
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, host: str, request: Request) -> Any:
        """Run a request on a host, one at a time for each host. Raises the request's exceptions."""
        return self.hosts[host].ask(request)

    def ip(self, host: str, *commands: str) -> None:
        """Run commands of ``ip`` on a host."""
        self.ask(host, Ip("\n".join((*commands, ""))))

    def join(self, host: str) -> Worker:
        """Return another process in the namespace of a host; it ends with the topology."""
        start = Join(f"{host}'s", self.hosts[host].pid)
        return self._stack.enter_context(Worker(start))

    def connect(self, host: str, name: str) -> None:
        """Make the veth pair between the node's device ``name`` and a host; both ends are still down."""
        pid = self.hosts[host].pid
        self.ip("node", f"link add {name} type veth peer name {UPLINK} netns {pid}")
        if self._software:
            self.ask("node", ChecksumsInSoftware(name))
            self.ask(host, ChecksumsInSoftware(UPLINK))

    def connect_pod(self, pod: str) -> None:
        """Make a pod's veth pair with addresses and routes on both sides, as when a pod is created."""
        self.connect(pod, pod)
        self.ip("node", *device_batch(self.plan, pod))
        self.ask(pod, Ip(pod_batch(pod)))

    def _build(self) -> None:
        for name in ("node", "client", *PODS):
            own = _OF_NODE if name == "node" else _OF_OTHERS
            start = Start(name, {**_EVERYWHERE, **own}, self._requests)
            self.hosts[name] = self._stack.enter_context(Worker(start))
        self.connect("client", UPLINK)
        self.ask("client", Ip(client_batch()))
        for pod in PODS:
            self.connect(pod, pod)
            self.ask(pod, Ip(pod_batch(pod)))
        self.ask("node", Ip(node_batch(self.plan)))
        for pod in PODS:
            self.ask(pod, Serve())

    def sysctls(self, host: str, **values: str) -> None:
        """Set sysctls of a host, by their paths with ``__`` for slashes."""
        self.ask(host, Sysctls({name.replace("__", "/"): value for name, value in values.items()}))
