from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.errors import ParseError
from translate.ir import (
    Family,
    Interval,
    IpSet,
    SetDirection,
    SetElement,
    SetOption,
    SetTest,
    SetType,
    parse_address,
)
from translate.read import IpSets, SetForm, read_ipsets, read_ruleset, with_sets
from translate.write import write_ipsets

HASH = "family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xbae38c6e"
SAVE = f"""create ports hash:ip,port {HASH}
add ports 10.0.0.1,tcp:80
add ports 10.0.0.1,icmp:echo-request
add ports 10.0.0.1,icmp:77/3
add ports 10.0.0.1,gre:0
add ports 10.0.0.2,99:0
create nets hash:ip,port,net {HASH} counters comment
add nets 10.0.0.1,udp:53,10.1.0.0/16 packets 3 bytes 99 comment "a b"
add nets 10.0.0.1,udp:53,10.1.2.0/24 nomatch packets 0 bytes 0 comment "but these"
add nets 10.0.0.1,udp:53,10.9.9.9 packets 0 bytes 0
create six hash:net,port family inet6 hashsize 1024 maxelem 65536 bucketsize 12 initval 0x53f1803d
add six fd00::/64,sctp:9
add six fd00::1,ipv6-icmp:echo-request
create map bitmap:port range 30000-32767 timeout 0
add map 30001 timeout 0
create void hash:ip family inet6 hashsize 1024 maxelem 65536 skbinfo bucketsize 12 initval 0xe10bfb76
"""
LIST = """Name: ports
Type: hash:ip,port
Revision: 7
Header: family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xbae38c6e
Size in memory: 792
References: 1
Number of entries: 2
Members:
10.0.0.1,tcp:80
10.0.0.2,99:0

Name: map
Type: bitmap:port
Revision: 3
Header: range 30000-32767
Size in memory: 8264
References: 0
Number of entries: 0
Members:
"""


def read(text: str, form: SetForm | None = None) -> IpSets:
    return read_ipsets(text.encode(), name="sets", form=form)


def keys(text: str) -> list[tuple[tuple[int, int], ...]]:
    (one,) = read(text).sets
    return [tuple((i.low, i.high) for i in element.key) for element in one.elements]


def faults(text: str, form: SetForm | None = None) -> list[tuple[int, int, str]]:
    with pytest.raises(ParseError) as caught:
        read(text, form)
    return [(d.origin.line, d.origin.column, d.message) for d in caught.value.diagnostics]


def test_what_ipset_save_printed_is_written_to_the_byte() -> None:
    assert write_ipsets(read(SAVE).sets) == SAVE


def test_an_element_is_a_point_per_cell_and_a_prefix_for_a_net() -> None:
    sets = {one.name: one for one in read(SAVE).sets}
    address = parse_address(Family.IP, "10.0.0.1")
    net = Interval.prefix(parse_address(Family.IP, "10.1.2.0"), 24, 32)
    point = Interval.point
    assert sets["nets"].elements[1] == SetElement(
        key=(point(address), point(17), point(53), net),
        nomatch=True,
        options=(SetOption("packets", "0"), SetOption("bytes", "0"), SetOption("comment", "but these")),
    )
    assert sets["ports"].elements[1].key == (point(address), point(1), point(0x0800))
    assert sets["map"].family is None
    assert (sets["void"].type, sets["void"].family, sets["void"].elements) == (
        SetType.HASH_IP,
        Family.IP6,
        (),
    )


def test_a_listing_says_the_same_as_the_save() -> None:
    listed = {one.name: one for one in read(LIST).sets}
    saved = {one.name: one for one in read(SAVE).sets}
    assert listed["ports"].options == saved["ports"].options
    assert set(listed["ports"].elements) < set(saved["ports"].elements)
    assert listed["map"].elements == ()
    assert read(LIST, SetForm.LISTING) == read(LIST)


def test_ranges_are_the_elements_that_they_stand_for() -> None:
    one = parse_address(Family.IP, "10.0.0.1")
    text = "create x hash:ip,port\nadd x 10.0.0.1-10.0.0.2,udp:53-54\n"
    assert keys(text) == [((a, a), (17, 17), (p, p)) for a in (one, one + 1) for p in (53, 54)]
    assert keys("create x hash:ip\nadd x 10.0.0.1/31\n") == [((one - 1, one - 1),), ((one, one),)]
    assert keys("create x bitmap:port range 1-9\nadd x 2-3\nadd x tcp:7\n") == [
        ((2, 2),),
        ((3, 3),),
        ((7, 7),),
    ]
    assert keys("create x hash:net\nadd x 10.0.0.0-10.0.0.6\n") == [
        ((one - 1, one + 2),),
        ((one + 3, one + 4),),
        ((one + 5, one + 5),),
    ]
    assert keys("create x hash:ip,port\nadd x 10.0.0.1,http\n") == [((one, one), (6, 6), (80, 80))]


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("add y 10.0.0.1", 5, 'set "y" is not created before this line'),
        ("create x hash:ip", 8, 'set "x" is created twice'),
        ("add x 10.0.0.1", 7, "the element is already in the set"),
        ("add x 10.0.0.1,tcp:80", 7, "hash:ip has elements of 1 parts, not 2"),
        ("add x fd00::1", 7, '"fd00::1" is not an IPv4 address'),
        ("add x 0.0.0.0", 7, "the address 0 cannot be an element"),
        ("add x 10.0.0.9-10.0.0.8", 7, 'range "10.0.0.9-10.0.0.8" ends before it begins'),
        ("add x 10.0.0.0/8", 7, "more elements than the set can hold (maxelem 65536)"),
        ("add x 10.0.0.2 nomatch", 16, 'hash:ip has no "nomatch" elements'),
        ("add x 10.0.0.2 colour red", 16, 'unknown option "colour" of an element'),
        ("add x", 6, '"add" needs a set and an element'),
        ("del x 10.0.0.1", 1, 'unknown command "del"'),
        ('add x 10.0.0.2 comment "no end', 24, "a double quote is opened and never closed"),
        ("create z bitmap:port", 1, "bitmap:port needs a range"),
        ("create z hash:ip maxelem many", 26, '"many" is not a number'),
        ("create z hash:ip range 1-2", 24, '"range 1-2" is not valid for hash:ip'),
        ("*filter", 1, 'unknown command "*filter"'),
    ],
)
def test_a_wrong_line_is_shown(line: str, column: int, message: str) -> None:
    assert faults(f"create x hash:ip\nadd x 10.0.0.1\n{line}\n") == [(3, column, message)]


@pytest.mark.parametrize(
    ("element", "column"),
    [
        ("10.0.0.1,gre:5", 20),
        ("10.0.0.1,icmp:what", 21),
        ("10.0.0.1,icmpv6:1/1", 16),
        ("10.0.0.1,nobody:1", 16),
        ("10.0.0.1,tcp:65536", 20),
        ("10.0.0.1,tcp:9-8", 20),
    ],
)
def test_a_wrong_port_is_pointed_at(element: str, column: int) -> None:
    found = faults(f"create hosts hash:ip,port\nadd hosts {element}\n")
    assert [(line, at) for line, at, _ in found] == [(2, column + 4)]


def test_a_full_set_is_a_fault() -> None:
    text = "create x hash:ip maxelem 1\nadd x 10.0.0.1\nadd x 10.0.0.2\n"
    assert faults(text) == [(3, 7, "the set is full: maxelem is 1")]


def test_what_is_not_a_listing_is_shown() -> None:
    assert faults("10.0.0.1\n", SetForm.LISTING) == [(1, 1, 'expected "Name:"')]
    assert faults("Name: x\nType: hash:ip\n") == [(1, 1, 'set "x" has no "Header:"')]
    assert faults(b"\0".decode())[0][2] == "this is a binary file, not ipsets"


RULES = b"""*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m set --match-set %s -j DROP
COMMIT
"""


def asked(text: str, asks: str, family: Family = Family.IP) -> tuple[IpSet, ...]:
    ruleset = read_ruleset(RULES % asks.encode(), name="rules", family=family)
    return with_sets(ruleset, read(text)).sets


def test_rules_get_the_sets_that_they_ask_and_no_others() -> None:
    assert [one.name for one in asked(SAVE, "ports dst,dst")] == ["ports"]
    assert [one.name for one in asked(SAVE, "map src", Family.IP6)] == ["map"]


UNREAD = """create names list:set size 8
add names ports
create away hash:ip family inet timeout 300
add away 10.0.0.1 timeout 299
create short hash:ip family inet timeout 300
add short 10.0.0.1
create masked hash:ip family inet netmask 24
add masked 10.0.0.0
"""


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ("nothing src", 'there is no ipset "nothing" in sets'),
        ("ports dst", 'ipset "ports" is a hash:ip,port with 2 dimensions, not "dst"'),
        ("ports dst,dst,src", 'ipset "ports" is a hash:ip,port with 2 dimensions, not "dst,dst,src"'),
        ("six dst,dst", 'ipset "six" is of family ip6, the rules of ip: it never matches'),
        ("names src", "sets of type list:set are not supported"),
        ("away src", "its element 10.0.0.1 (line 20) times out in 299 seconds"),
        ("short src", "its element 10.0.0.1 (line 22) times out in 300 seconds"),
        ("masked src", "its option netmask is not supported"),
    ],
)
def test_a_rule_that_asks_in_vain_is_shown(asks: str, says: str) -> None:
    with pytest.raises(ParseError) as caught:
        asked(SAVE + UNREAD, asks)
    (diagnostic,) = caught.value.diagnostics
    assert says in diagnostic.message
    assert (diagnostic.origin.file, diagnostic.origin.line, diagnostic.origin.column) == ("rules", 3, 31)


def test_a_terse_or_cut_listing_cannot_be_asked() -> None:
    terse = LIST.replace("Members:\n10.0.0.1,tcp:80\n10.0.0.2,99:0\n", "")
    cut = LIST.replace("10.0.0.2,99:0\n", "")
    for text, says in ((terse, "its members are not shown"), (cut, "1 of its members are not shown")):
        with pytest.raises(ParseError, match=says):
            asked(text, "ports dst,dst")


def test_rules_without_their_sets_say_which_are_missing() -> None:
    ruleset = read_ruleset(RULES % b"ports src,dst", name="rules")
    assert [(rule.origin.line, name) for rule, name in ruleset.sets_not_given()] == [(3, "ports")]
    (pair,) = ruleset.set_tests()
    assert pair[1] == SetTest(name="ports", directions=(SetDirection.SRC, SetDirection.DST))


ADDRESSES = st.integers(1, 0xFFFFFFFE)
POINT_SETS = st.sets(
    st.tuples(ADDRESSES, st.sampled_from([6, 17, 132, 136, 1, 47]), st.integers(0, 0xFFFF)), max_size=20
)


@given(POINT_SETS, st.sets(st.tuples(ADDRESSES, st.integers(1, 32)), max_size=20), st.booleans())
def test_what_is_written_is_read_again(
    points: set[tuple[int, int, int]], nets: set[tuple[int, int]], nomatch: bool
) -> None:
    ports = {
        tuple(map(Interval.point, (address, proto, 0 if proto == 47 else port))): None
        for address, proto, port in points
    }
    prefixes = {(Interval.prefix(address, length, 32),): None for address, length in nets}
    sets = tuple(
        IpSet(
            name=kind.value,
            type=kind,
            family=Family.IP,
            elements=tuple(SetElement(key=key, nomatch=drop) for key in of),
            options=(SetOption("family", "inet"),),
        )
        for kind, of, drop in ((SetType.HASH_IP_PORT, ports, False), (SetType.HASH_NET, prefixes, nomatch))
    )
    text = write_ipsets(sets)
    assert read(text).sets == sets
    assert write_ipsets(read(text).sets) == text
