"""Members of rulesets, their classes, and what is exchanged between them."""

from __future__ import annotations

from itertools import pairwise

from backends.model.flow import Send
from backends.model.node import node_from_json
from backends.model.packet import Packet
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.exchange import Exchange
from harness.corpus.generate.alike.groups import members_of
from translate.ir import Family, Ruleset, parse_address
from translate.read import read_ruleset

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/16"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)
HEAD = "*nat\n:PREROUTING ACCEPT [0:0]\n:BIT - [0:0]\n:ALL - [0:0]\n"
CALL = "-A PREROUTING -j ALL\n-A BIT -j MARK --set-xmark 0x4000/0x4000\n"


def read(text: str) -> Ruleset:
    return read_ruleset(text.encode(), name="rules")


def services(*ports: tuple[str, int, str, int]) -> Ruleset:
    """Services of one endpoint each: address, port, endpoint and its port."""
    chains = "".join(f":S{n} - [0:0]\n:E{n} - [0:0]\n" for n in range(len(ports)))
    rules = "".join(
        f"-A ALL -d {at}/32 -p tcp -m tcp --dport {port} -j S{n}\n"
        f"-A S{n} ! -s 10.1.0.0/16 -j BIT\n-A S{n} -j E{n}\n"
        f"-A E{n} -s {to}/32 -j BIT\n-A E{n} -p tcp -j DNAT --to-destination {to}:{to_port}\n"
        for n, (at, port, to, to_port) in enumerate(ports)
    )
    return read(f"{HEAD}{chains}{CALL}{rules}COMMIT\n")


def shapes(ruleset: Ruleset) -> list[int]:
    """The number of each member's shape, in order of appearance."""
    found = [member.shape for member in members_of(ruleset)]
    return [found.index(shape) for shape in found]


def test_services_that_differ_in_constants_and_names_have_one_shape() -> None:
    rules = services(("10.96.0.1", 80, "10.1.0.9", 8080), ("10.96.7.9", 443, "10.1.3.4", 9090))
    one, other = members_of(rules)
    assert one.shape == other.shape
    assert len(one.places) == 5
    assert [str(c.value) for c in one.constants] != [str(c.value) for c in other.constants]
    assert len(one.constants) == len(other.constants)


def test_equal_constants_are_part_of_the_shape() -> None:
    apart, same = ("10.96.0.1", 80, "10.1.0.9", 8080), ("10.96.0.2", 80, "10.1.0.8", 80)
    assert shapes(services(apart, same)) == [0, 1]


def test_the_length_of_a_prefix_a_mark_and_an_interface_are_part_of_the_shape() -> None:
    head = "*filter\n:INPUT ACCEPT [0:0]\n"
    pairs = {
        "-s 10.0.0.0/8 -j DROP": "-s 10.0.0.0/9 -j DROP",
        "-s 10.0.0.1/32 -i eth0 -j DROP": "-s 10.0.0.1/32 -i eth1 -j DROP",
        "-s 10.0.0.1/32 -m mark --mark 0x1 -j DROP": "-s 10.0.0.1/32 -m mark --mark 0x2 -j DROP",
        "-s 10.0.0.1/32 -j DROP": "! -s 10.0.0.1/32 -j DROP",
        "-s 10.0.0.1/32 -j ACCEPT": "-s 10.0.0.1/32 -j DROP",
        "-s 10.0.0.1/32 -j LOG": "-d 10.0.0.1/32 -j LOG",
    }
    for one, other in pairs.items():
        assert shapes(read(f"{head}-A INPUT {one}\n-A INPUT {other}\nCOMMIT\n")) == [0, 1], one
        twice = one.replace("10.0.0.", "11.0.0.")
        assert shapes(read(f"{head}-A INPUT {one}\n-A INPUT {twice}\nCOMMIT\n")) == [0, 0], one


def test_rules_of_one_destination_in_several_tables_are_one_member() -> None:
    rules = read(
        "*filter\n:FORWARD ACCEPT [0:0]\n"
        "-A FORWARD -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n"
        "*nat\n:PREROUTING ACCEPT [0:0]\n"
        "-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.0.9\nCOMMIT\n"
    )
    (member,) = members_of(rules)
    assert [table.value for table, _, _ in member.entries] == ["filter", "nat"]


def test_a_chain_without_constants_joins_nobody_and_one_with_constants_does() -> None:
    head = "*filter\n:INPUT ACCEPT [0:0]\n:C - [0:0]\n"
    head += "-A INPUT -s 10.0.0.1/32 -j C\n-A INPUT -s 10.0.0.2/32 -j C\n"
    assert len(members_of(read(f"{head}-A C -p tcp -j DROP\nCOMMIT\n"))) == 2
    assert len(members_of(read(f"{head}-A C -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n"))) == 1


def test_a_deep_nest_of_chains() -> None:
    depth = 3000
    names = "".join(f":C{n} - [0:0]\n" for n in range(depth))
    calls = "".join(f"-A {one} -j {other}\n" for one, other in pairwise(f"C{n}" for n in range(depth)))
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{names}-A INPUT -s 10.0.0.1/32 -j C0\n{calls}"
    (member,) = members_of(read(f"{text}-A C{depth - 1} -s 10.0.0.2/32 -j DROP\nCOMMIT\n"))
    assert len(member.places) == depth + 1


def searched(ruleset: Ruleset) -> list[list[int]]:
    """The numbers of the searched members of each class that has others."""
    numbers = {member.entries: n for n, member in enumerate(members_of(ruleset))}
    classes = Classes.of(ruleset, Places.of(ruleset, NODE)).classes
    return [[numbers[member.entries] for member in one.searched] for one in classes]


def test_first_last_lowest_highest_and_neighbours_are_searched() -> None:
    far = [(f"10.96.{n}.1", 1000 + 7 * n, f"10.1.{n}.9", 20000 + 7 * n) for n in (5, 8, 2, 9, 7, 4, 6, 3)]
    assert searched(services(*far)) == [[0, 2, 3, 7]]
    near = [*far[:5], ("10.96.5.2", 3000, "10.1.99.9", 5000), *far[5:]]
    assert searched(services(*near)) == [[0, 2, 3, 5, 8]]  # adjacent to the first
    shared = [*far[:5], ("10.96.5.1", 3000, "10.1.99.9", 5000), *far[5:]]
    assert searched(services(*shared)) == [[0, 2, 3, 5, 8]]  # the first one's address
    target = [*far[:5], ("10.96.77.1", 3000, "10.1.7.9", 20100), *far[5:]]
    assert 4 in searched(services(*target))[0]  # both send packets to one endpoint
    assert 5 in searched(services(*target))[0]


def test_of_two_nobody_is_left_to_others() -> None:
    assert searched(services(("10.96.0.1", 80, "10.1.0.9", 81), ("10.96.9.1", 90, "10.1.9.9", 91))) == []


def exchange(*ports: tuple[str, int, str, int]) -> Exchange:
    rules = services(*ports)
    one, other, *_ = members_of(rules)
    return Exchange.of(one, other, Places.of(rules, NODE))


def packet(src: str, dst: str, dport: int) -> Packet:
    one, other = (parse_address(Family.IP, text) for text in (src, dst))
    return Packet(family=Family.IP, src=one, dst=other, proto=6, sport=40000, dport=dport)


def test_constants_are_exchanged_and_what_is_beside_a_port_stays_beside_it() -> None:
    swap = exchange(("10.96.0.1", 80, "10.1.0.9", 8080), ("10.96.7.9", 443, "10.1.3.4", 9090))
    for (src, dst, dport), expected in {
        ("198.51.100.7", "10.96.0.1", 80): ("198.51.100.7", "10.96.7.9", 443),
        ("10.1.0.9", "10.96.0.1", 80): ("10.1.3.4", "10.96.7.9", 443),
        ("10.1.0.7", "10.96.0.1", 79): ("10.1.0.7", "10.96.7.9", 442),
        ("10.1.0.7", "10.96.0.2", 81): ("10.1.0.7", "10.96.7.10", 444),
        ("10.1.0.7", "203.0.113.7", 22): ("10.1.0.7", "203.0.113.7", 22),
    }.items():
        made = swap.steps((Send(packet=packet(src, dst, dport), entry="pod0"),))
        assert made is not None
        assert isinstance(made[0], Send)
        assert made[0].packet == packet(*expected), (src, dst, dport)


def test_a_packet_enters_where_its_new_source_is() -> None:
    swap = exchange(("10.96.0.1", 80, "10.1.0.9", 8080), ("10.96.7.9", 443, "192.0.2.77", 9090))
    made = swap.steps((Send(packet=packet("10.1.0.9", "10.96.0.1", 80), entry="pod0"),))
    assert made is not None
    assert isinstance(made[0], Send)
    assert made[0].entry == "eth0"


def test_no_flow_where_the_port_would_be_none() -> None:
    swap = exchange(("10.96.0.1", 80, "10.1.0.9", 8080), ("10.96.7.9", 65535, "10.1.3.4", 9090))
    assert swap.steps((Send(packet=packet("10.1.0.7", "10.96.0.1", 81), entry="pod0"),)) is None
