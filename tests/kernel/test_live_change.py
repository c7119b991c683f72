"""Rules that change while they are in the kernel: what is loaded then, and what becomes of connections."""

from __future__ import annotations

import dataclasses
import random
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from backends.replay.worker import Worker
from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from tests.lab.kuberules import Cluster, Endpoint, Service, Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family
from translate.nft import ChangeKind, NftOutput, emit
from translate.nft.change import change
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

RULESETS: Final = Path(__file__).parents[1] / "corpus/rulesets"
_BLOCK: Final = re.compile(r"^\t((?:set|map|chain) \S+) \{\n(.*?)^\t\}", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r'\s+comment "[^"]*"')


class _Node:
    """In a namespace: an nft handle that is kept, and addresses to talk to."""

    def __init__(self) -> None:
        self.handle = NftHandle()

    def __call__(self, message: Any) -> Any:
        match message:
            case ("run", text):
                return self.handle.run(text) if text else ""
            case ("apply", text):
                return NftHandle().run(text) if text else ""
            case ("list",):
                return NftHandle().run("list ruleset")
            case ("talk", old, new):
                return self.talk(old, new)
        raise TypeError(message)

    def talk(self, old: str, new: str) -> list[str]:
        """A connection before the change, the same after it, and a new one."""
        for command in (
            "link set lo up",
            "addr add 10.244.0.2/32 dev lo",
            "addr add 10.244.0.3/32 dev lo",
            "route add 10.96.0.0/16 dev lo",
        ):
            run(("ip", *command.split()))
        self.handle.run(old)
        with _listening("10.244.0.2") as first, _listening("10.244.0.3") as second:
            servers = {"10.244.0.2": first, "10.244.0.3": second}
            before, its_server, seen = _connected(servers)
            self.handle.run(new)
            before.sendall(b"still there")
            said = its_server.recv(100).decode()
            after, other_server, seen_then = _connected(servers)
            for one in (before, its_server, after, other_server):
                one.close()
        return [seen, said, seen_then]

    def close(self) -> None:
        self.handle.close()


@contextmanager
def _listening(address: str) -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind((address, 8080))
        server.listen()
        server.settimeout(0.2)
        yield server


def _connected(servers: dict[str, socket.socket]) -> tuple[socket.socket, socket.socket, str]:
    client = socket.create_connection(("10.96.0.10", 80), timeout=5)
    for address, server in servers.items():
        try:
            accepted, _ = server.accept()
        except TimeoutError:
            continue
        accepted.settimeout(5)
        return client, accepted, address
    raise AssertionError("nobody was reached")


def _output(cluster: Cluster, level: int) -> NftOutput:
    rules = kube_proxy_rules(cluster).encode()
    return emit(lower(read_ruleset(rules, name="rules", family=cluster.family), level=level))


def _normal(listing: str) -> dict[str, tuple[str, list[str]]]:
    """Return the loaded ruleset without comments, with elements in any order."""
    found = {}
    for name, body in _BLOCK.findall(_COMMENT.sub("", listing)):
        head, _, elements = body.partition("elements = {")
        found[name] = (" ".join(head.split()), sorted(e.strip(" \t\n}") for e in elements.split(",")))
    return found


def _changed(cluster: Cluster, rng: random.Random) -> Cluster:
    """Some services with other endpoints, features or ports, one gone, one more."""
    services = list(cluster.services)
    for _ in range(rng.randint(1, 3)):
        index = rng.randrange(len(services))
        services[index] = _changed_service(services[index], rng)
    if rng.random() < 0.3:
        services.pop(rng.randrange(len(services)))
    return dataclasses.replace(cluster, services=tuple(services))


def _changed_service(service: Service, rng: random.Random) -> Service:
    match rng.randrange(5), service.endpoints:
        case 0, (_, *rest):
            return dataclasses.replace(service, endpoints=tuple(rest))
        case 1, (first, *rest):
            moved = Endpoint(first.address + 1 + rng.randrange(50), first.port, first.local)
            return dataclasses.replace(service, endpoints=(moved, *rest))
        case 2, _:
            return dataclasses.replace(service, affinity=0 if service.affinity else 300)
        case 3, _:
            return dataclasses.replace(service, port=service.port + 1)
        case _, endpoints:
            more = Endpoint(endpoints[-1].address + 100 if endpoints else 0x0AF40505, 8080)
            return dataclasses.replace(service, endpoints=(*endpoints, more))


@pytest.mark.parametrize("level", LEVELS)
def test_every_change_loads_and_leaves_what_a_fresh_load_would(level: int) -> None:
    rng = random.Random(level)
    shape = Shape(
        services=12, node_ports=4, load_balancers=3, source_ranges=2, affinity=2, without_endpoints=2
    )
    cluster = draw_cluster(shape)
    kinds = set()
    with Worker(_Node) as node:
        now = _output(cluster, level)
        node.ask(("run", now.text))
        for _ in range(25):
            cluster = _changed(cluster, rng)
            wanted = _output(cluster, level)
            change = wanted.change_from(now)
            kinds.add(change.kind)
            node.ask(("run", change.text))
            loaded = _normal(node.ask(("list",)))
            node.ask(("run", wanted.text))
            assert loaded == _normal(node.ask(("list",))), change.text
            assert loaded
            now = wanted
    assert ChangeKind.STRUCTURE in kinds
    if level == max(LEVELS):
        assert ChangeKind.ELEMENTS in kinds


@pytest.mark.parametrize("ruleset", ["kind-node", "port-maps"])
@pytest.mark.parametrize("kept", [True, False], ids=["the handle that loaded them", "another handle"])
def test_the_rules_of_each_chain_can_be_written_again(ruleset: str, *, kept: bool) -> None:
    """Maps that nft cannot use in a later transaction are declared again (``translate.nft.references``)."""
    rules = (RULESETS / ruleset / "rules.iptables-save").read_bytes()
    now = emit(lower(read_ruleset(rules, name=ruleset), level=2))
    declared = 0
    with Worker(_Node) as node:
        node.ask(("run", now.text))
        wanted = _normal(node.ask(("list",)))
        for place, chain in enumerate(now.structure.chains):
            if not chain.rules:
                continue
            chains = list(now.structure.chains)
            chains[place] = dataclasses.replace(chain, rules=chain.rules[1:])
            other = dataclasses.replace(now.structure, chains=tuple(chains))
            for text in (change(now.structure, other).text, change(other, now.structure).text):
                node.ask(("run" if kept else "apply", text))
                declared += "map" in text
            assert _normal(node.ask(("list",))) == wanted, chain.name
    assert declared


def test_limits_are_refilled_beside_a_map_of_ports() -> None:
    rules = (
        "*nat\n:OUTPUT ACCEPT [0:0]\n"
        "-A OUTPUT -d 10.96.0.1/32 -p udp -j DNAT --to-destination 10.244.0.5:80\n"
        "-A OUTPUT -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.244.1.7:80\n"
        "-A OUTPUT -d 10.96.0.1/32 -p udp -m quota --quota 41 -j DNAT --to-destination 10.244.0.6:53\n"
        "COMMIT\n"
    )
    output = emit(lower(read_ruleset(rules.encode(), name="rules"), level=2))
    with Worker(_Node) as node:
        node.ask(("run", output.text))
        wanted = _normal(node.ask(("list",)))
        for how in ("run", "apply"):
            node.ask((how, output.flush))
            assert _normal(node.ask(("list",))) == wanted
    assert "delete map" in output.flush


def test_a_map_outgrows_its_room_and_what_packets_put_into_sets_stays() -> None:
    def rules(services: int) -> NftOutput:
        text = "*nat\n:PREROUTING ACCEPT [0:0]\n"
        text += (
            "-A PREROUTING -m recent --name seen --set\n-A PREROUTING -m recent --name seen --rcheck -j LOG\n"
        )
        text += "".join(
            f"-A PREROUTING -d 10.96.{n // 250}.{n % 250}/32 -p tcp -m tcp --dport 80"
            f" -j DNAT --to-destination 10.244.0.{1 + n % 9}:80\n"
            for n in range(services)
        )
        return emit(lower(read_ruleset(f"{text}COMMIT\n".encode(), name="rules", family=Family.IP), level=2))

    def maps(listing: str) -> dict[str, tuple[str, list[str]]]:
        """All but the list of clients; a map may have more room than a fresh one has."""
        found = _normal(re.sub(r"\n\t\tsize \d+", "", listing))
        return {name: what for name, what in found.items() if name != f"set {list_}"}

    now = rules(1000)
    (list_,) = (s.name for s in now.structure.sets)
    steps = ((1030, 1536), (1536, 1536), (1537, 3072), (1100, 3072), (3000, 3072), (100, 3072))
    with Worker(_Node) as node:
        node.ask(("run", now.text))
        for number, (services, room) in enumerate(steps, 1):
            node.ask(("run", f"add element ip nfparity {list_} {{ 192.0.2.{number} }}"))
            wanted = rules(services)
            node.ask(("run", wanted.change_from(now).text))
            now, loaded = wanted, node.ask(("list",))
            assert f"size {room}\n" in loaded
            assert loaded.count("192.0.2.") == number
            with Worker(_Node) as fresh:
                fresh.ask(("run", now.text))
                assert maps(loaded) == maps(fresh.ask(("list",)))


def test_dollar_signs_of_a_prefix_stay_what_they_are() -> None:
    def output(*prefixes: str) -> NftOutput:
        logs = "".join(f'-A INPUT -j LOG --log-prefix "{prefix}"\n' for prefix in prefixes)
        text = f"*filter\n:INPUT ACCEPT [0:0]\n{logs}COMMIT\n"
        return emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=0))

    with Worker(_Node) as node:
        now = output("a $x")
        node.ask(("run", now.text))
        node.ask(("run", now.text))
        for prefixes in (("a $x", "$y$"), ("$y$x",), ("none",), ("$",)):
            wanted = output(*prefixes)
            node.ask(("run", wanted.change_from(now).text))
            now = wanted
            loaded = re.findall(r'log prefix "(.*?)"', node.ask(("list",)))
            assert tuple(loaded) == prefixes


def test_a_change_that_the_kernel_refuses_changes_nothing() -> None:
    cluster = draw_cluster(Shape(services=4))
    moved = dataclasses.replace(cluster, services=cluster.services[1:])
    old, new = _output(cluster, 2), _output(moved, 2)
    change = new.change_from(old)
    with Worker(_Node) as node:
        node.ask(("run", old.text))
        node.ask(("run", change.text))
        before = node.ask(("list",))
        with pytest.raises(Exception, match="No such file"):
            node.ask(("run", change.text))  # its elements are gone already
        assert node.ask(("list",)) == before


def test_an_established_connection_outlives_the_change() -> None:
    def rules(endpoint: str) -> NftOutput:
        text = (
            "*nat\n:OUTPUT ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n"
            "-A OUTPUT -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j A\n"
            "-A OUTPUT -d 10.96.0.11/32 -p tcp -m tcp --dport 80 -j B\n"
            f"-A A -p tcp -j DNAT --to-destination {endpoint}:8080\n"
            "-A B -p tcp -j DNAT --to-destination 10.244.0.7:8080\nCOMMIT\n"
        )
        return emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=2))

    old, new = rules("10.244.0.2"), rules("10.244.0.3")
    change = new.change_from(old)
    assert change.kind is ChangeKind.ELEMENTS
    with Worker(_Node) as node:
        assert node.ask(("talk", old.text, change.text)) == ["10.244.0.2", "still there", "10.244.0.3"]
