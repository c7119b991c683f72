"""Written rules: the kernel's own text to the byte, and any other text in a stable form."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.ir import Family
from translate.read import read_ruleset
from translate.write import write_save

TESTS = Path(__file__).parents[3]
KUBE_REAL = TESTS.parents[1] / "shared" / "corpora" / "kube-real"
KUBE_FILES = [
    "realistic.iptables-save",
    "realistic-xtnft.iptables-save",
    "realistic.ip6tables-save",
]


def again(data: bytes, family: Family = Family.IP, *, counters: bool = False) -> bytes:
    text = write_save(read_ruleset(data, name="rules", family=family), counters=counters)
    return text.encode("utf-8", "surrogateescape")


def test_the_dump_of_a_kind_node_to_the_byte() -> None:
    data = (TESTS / "corpus/rulesets/kind-node/rules.iptables-save").read_bytes()
    assert again(data) == data


@pytest.mark.parametrize("file", KUBE_FILES)
def test_the_dump_of_a_real_kube_proxy_to_the_byte(file: str) -> None:
    path = KUBE_REAL / file
    if not path.exists():
        pytest.skip(f"needs {path.name} of the shared corpora")
    data = path.read_bytes()
    assert again(data, Family.IP6 if "ip6" in file else Family.IP) == data


@pytest.mark.parametrize(("file", "family"), [("ip.rules", Family.IP), ("ip6.rules", Family.IP6)])
def test_every_option_means_the_same_once_written(file: str, family: Family) -> None:
    data = (TESTS / "corpus/rulesets/every-option" / file).read_bytes()
    first = read_ruleset(data, name="first", family=family)
    written = write_save(first, counters=True)
    second = read_ruleset(written.encode(), name="second", family=family)
    assert write_save(second, counters=True) == written
    for before, after in zip(first.tables, second.tables, strict=True):
        assert before.preamble == after.preamble
        for one, other in zip(before.chains, after.chains, strict=True):
            assert [(r.tests, r.actions, r.matches) for r in one.rules] == [
                (r.tests, r.actions, r.matches) for r in other.rules
            ]


def test_counters() -> None:
    data = b"*filter\n:INPUT DROP [1:2]\n[3:4] -A INPUT -j ACCEPT\n[0:0] -A INPUT\nCOMMIT\n"
    assert again(data, counters=True) == data
    assert again(data) == data.replace(b"[3:4] ", b"").replace(b"[0:0] -A", b"-A")


def test_unknown_counters_are_zero() -> None:
    data = b"*filter\n:INPUT DROP\n-A INPUT\nCOMMIT\n"
    assert again(data, counters=True) == b"*filter\n:INPUT DROP [0:0]\n[0:0] -A INPUT\nCOMMIT\n"


def test_comments_in_another_encoding_come_back() -> None:
    data = b'*filter\n:a - [0:0]\n-A a -m comment --comment "caf\xe9" -j ACCEPT\nCOMMIT\n'
    assert again(data) == data


addresses = st.builds(
    lambda value, length: f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}/{length}",
    st.integers(0, 2**32 - 1),
    st.integers(1, 32),
)
ports = st.integers(0, 65535).map(str)
words = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=40)


def maybe(option: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), option)


def negatable(name: str, value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda sign, text: f" {sign}{name} {text}", st.sampled_from(["", "! "]), value)


def escaped(text: str) -> str:
    return "".join("\\" + c if c in "\"\\'" else c for c in text)


rules = st.builds(
    lambda *parts: "-A mine" + "".join(parts),
    maybe(negatable("-s", addresses)),
    maybe(negatable("-d", addresses)),
    maybe(negatable("-i", st.sampled_from(["eth0", "veth+", "lo"]))),
    st.one_of(
        st.just(""),
        st.builds(
            lambda sport, dport: f" -p tcp -m tcp{sport}{dport}",
            maybe(negatable("--sport", ports)),
            maybe(negatable("--dport", ports)),
        ),
    ),
    maybe(
        words.filter(lambda w: len(w.encode()) < 256).map(lambda w: f' -m comment --comment "{escaped(w)}x."')
    ),
    maybe(negatable("--mark", st.integers(0, 2**32 - 1).map(hex)).map(lambda text: " -m mark" + text)),
    maybe(
        st.sampled_from(["NEW", "INVALID,NEW", "RELATED,ESTABLISHED,DNAT"]).map(
            lambda states: f" -m conntrack ! --ctstate {states}"
        )
    ),
    st.sampled_from(["", " -j other", " -g other", " -j ACCEPT", " -j MARK --set-xmark 0x1/0x1"]),
)


@given(st.lists(rules, max_size=8))
def test_what_iptables_save_would_print_comes_back_to_the_byte(lines: list[str]) -> None:
    text = "\n".join(["*mangle", ":mine - [0:0]", ":other - [0:0]", *lines, "COMMIT", ""])
    assert again(text.encode()) == text.encode()
