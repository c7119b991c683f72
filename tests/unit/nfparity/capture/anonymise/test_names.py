"""Properties of anonymised names that hold for every key."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfparity.capture.anonymise.mapping import Mapping, kube_hash
from nfparity.capture.anonymise.names import Names
from nfparity.kubeproxy import ChainKind, Protocol, chain_name

KEYS = st.binary(min_size=16, max_size=32)
WORDS = st.text(st.sampled_from("abzAZ059"), min_size=1, max_size=4)


@given(KEYS, st.lists(WORDS, unique=True, min_size=2), st.frozensets(WORDS, max_size=5))
def test_different_words_stay_different_and_in_shape(
    key: bytes, words: list[str], kept: frozenset[str]
) -> None:
    names = Names(key)
    made = [names.word(one, kept) for one in words]
    assert len(set(made)) == len(words)
    for old, new in zip(words, made, strict=True):
        shapes = [(c.isdigit(), c.isupper()) for c in old]
        assert [(c.isdigit(), c.isupper()) for c in new] == shapes
        assert (new in kept) is (old in kept)


INTERFACES = st.sampled_from(
    [
        "lo",
        "eth0",
        "eth0.100",
        "cali",
        "cali1a2b",
        "c",
        "vpn",
        "vpn-7",
        "veth9",
        "br-1f",
        "br0",
        "acme0",
        "ace",
    ]
)


@given(KEYS, INTERFACES, INTERFACES)
def test_interfaces_begin_alike_as_before(key: bytes, one: str, other: str) -> None:
    names = Names(key)
    assert names.interface(one).startswith(names.interface(other)) is one.startswith(other)


@pytest.mark.parametrize("name", ["lo", "eth0", "eth12", "cni0", "bond1", "docker0", "kube-ipvs0", "cali"])
def test_interfaces_that_many_nodes_have_stay(name: str) -> None:
    assert Names(bytes(16)).interface(name) == name


LONG_NUMBERS = ["eth0.2031", "vlan1234", "wg4930123", "eno16777984", "ens203f113"]


@pytest.mark.parametrize(
    "name", ["cali12ab34cd56e", "veth1a2b3c4d", "br-0123456789ab", "acme-vpn", *LONG_NUMBERS]
)
def test_interfaces_of_ones_own_do_not(name: str) -> None:
    made = Names(bytes(16)).interface(name)
    assert made != name
    assert len(made) == len(name)


@pytest.fixture
def mapping() -> Mapping:
    made = Mapping(bytes(32))
    made.service("web/shop:https")
    made.endpoint("web/shop:https", "10.0.0.1:8443")
    made.learnt()
    return made


def test_chains_are_named_by_the_hash_of_the_new_name(mapping: Mapping) -> None:
    new = mapping.service("web/shop:https")
    old = chain_name(ChainKind.SVC, "web/shop:https", Protocol.TCP)
    assert mapping.chain(old) == chain_name(ChainKind.SVC, new, Protocol.TCP)
    endpoint = chain_name(ChainKind.SEP, "web/shop:https", Protocol.TCP, "10.0.0.1:8443")
    moved = f"{mapping.address('10.0.0.1')}:8443"
    assert mapping.chain(endpoint) == chain_name(ChainKind.SEP, new, Protocol.TCP, moved)


def test_a_hash_of_something_else_keeps_its_shape(mapping: Mapping) -> None:
    made = mapping.chain("KUBE-SVC-ABCDEFGHIJ234567")
    assert made != "KUBE-SVC-ABCDEFGHIJ234567"
    assert len(made) == 25
    assert set(made[9:]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")


def test_chains_of_nftables_mode(mapping: Mapping) -> None:
    tail = "web/shop/tcp/https__fd00.10..b/8443"
    made = mapping.chain(f"endpoint-{kube_hash(tail)[:8]}-{tail}")
    new = mapping.service("web/shop:https").replace("/", " ").replace(":", " ").split()
    address = mapping.address("fd00:10::b").replace(":", ".")
    moved = f"{new[0]}/{new[1]}/tcp/{new[2]}__{address}/8443"
    assert made == f"endpoint-{kube_hash(moved)[:8]}-{moved}"


KEPT = ["KUBE-SERVICES", "KUBE-MARK-MASQ", "KUBE-PROXY-CANARY", "DOCKER-USER", "cali-FORWARD", "INPUT",
        "cluster-ips", "nat-prerouting", "KUBE-LOAD-BALANCER-FW"]  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_chains_and_sets_that_every_cluster_has_stay(mapping: Mapping, name: str) -> None:
    assert mapping.chain(name) == name


COMMENTS = ["kubernetes service portals", "kubernetes load balancer firewall", "Active ClusterIPs",
            "kube-system/kube-dns:dns-tcp cluster IP", "default/kubernetes:https has no endpoints",
            "block incoming localnet connections", "rule masquerade LOCAL traffic for"]  # fmt: skip


@pytest.mark.parametrize("text", COMMENTS)
def test_comments_that_kube_proxy_writes_stay(mapping: Mapping, text: str) -> None:
    assert mapping.comment(text) == text


def test_a_comment_of_ones_own_does_not(mapping: Mapping) -> None:
    made = mapping.comment("web/shop:https -> 10.0.0.1:8443 for acme")
    assert (
        made == f"{mapping.service('web/shop:https')} -> {mapping.address('10.0.0.1')}:8443 for {made[-4:]}"
    )
    assert made[-4:] != "acme"


NUMBERS = [
    "203-0-113-77",
    "0313.0000.0161.0115",
    "3405803853",
    "77.113.0.203.in-addr.arpa",
    "224.113.0.203",
    "240.113.0.203:80",
    "::203.0.113.77",
    "0xCB00714D",
    "7.7.0.d.4.1.7.0.b.c",
    "+49 30 1234567",
    "ticket 4711 of acme",
    "see JIRA-12345",
    "Büro Köln",
    "отдел",
    "東京",
    "cali12ab34cd56e on eth0.2031",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_in_a_comment_may_be_anything(text: str) -> None:
    for key in range(4):
        names = Mapping(bytes((key,)) * 32)
        names.comment(text)
        names.learnt()
        made = names.comment(text)
        assert len(made.encode()) == len(text.encode()), made
        told = re.findall(r"[0-9A-Fa-f]{4,}|[^\x00-\x7f]+|acme|JIRA", text)
        assert [one for one in told if one in made] == [], made
        joined = re.sub(r"\W", "", text)
        assert joined not in re.sub(r"\W", "", made)


def test_addresses_of_every_host_and_ports_behind_addresses_stay(mapping: Mapping) -> None:
    assert mapping.comment("127.0.0.1:8080 and 224.0.0.0/4") == "127.0.0.1:8080 and 224.0.0.0/4"
    assert mapping.comment("10.0.0.1:8443 to") == f"{mapping.address('10.0.0.1')}:8443 to"


def test_names_of_chains_beyond_ascii_stay_different(mapping: Mapping) -> None:
    names = ["Köln", "Kéln", "東京", "東亰", "x\udcf6", "x\udcf7", "k\U0001f600", "k\U0001f601"]
    made = [mapping.chain(name) for name in names]
    assert len(set(made)) == len(names)
    assert not {"Köln", "東京"} & set(made)
