"""Extensions that are not modelled: their rules are kept as spelled, and wrong options are still refused."""

from __future__ import annotations

import pytest

from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Hidden, Rule, Unknown
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_MATCHES, UNMODELLED_TARGETS
from translate.write import write_save


def dump(words: str, table: str = "mangle") -> str:
    return f"*{table}\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT {words}\nCOMMIT\n"


def read(words: str, family: Family = Family.IP) -> Rule:
    ruleset = read_ruleset(dump(words).encode(), name="rules", family=family)
    return ruleset.tables[0].chains[0].rules[0]


@pytest.mark.parametrize(
    "words",
    [
        "-m osf --genre Linux --ttl 0 -j LOG --log-prefix limited",
        '-p tcp -m string --string "a \\"b\\" -j" --algo bm -j ACCEPT',
        "-m ipvs --ipvs -j ACCEPT",
        "-m rateest --rateest a --rateest-lt --rateest-bps 1Mbit -j ACCEPT",
        "-m rateest --rateest-delta --rateest1 a --rateest-bps1 1Mbit --rateest-gt --rateest2 b",
        "-p sctp -m sctp --chunk-types any DATA:Be -j ACCEPT",
        "-p sctp -m sctp ! --sport 80 ! --chunk-types only ALL -j ACCEPT",
        "-j ULOG --ulog-nlgroup 3",
        "-j SET --map-set hosts src,dst --map-mark",
    ],
)
def test_a_rule_is_written_as_it_was(words: str) -> None:
    text = dump(words)
    ruleset = read_ruleset(text.encode(), name="rules", family=Family.IP)
    assert write_save(ruleset) == text
    assert [unknown.extension for _, unknown in ruleset.unknowns()]
    with pytest.raises(UnsupportedError, match=r"not modelled|have no mark, class and queue"):
        lower(ruleset, level=0)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("-j CLUSTERIP --new --hashmode sourceip", "-m cluster took its place"),
    ],
)
def test_a_translation_says_why_a_target_cannot_be_modelled(words: str, reason: str) -> None:
    ruleset = read_ruleset(dump(words).encode(), name="rules", family=Family.IP)
    with pytest.raises(UnsupportedError, match=reason):
        lower(ruleset, level=0)


@pytest.mark.parametrize(
    ("words", "table", "family", "reason"),
    [
        ("-m conntrack --ctorigsrc 10.0.0.1/255.0.255.255 -j DROP", "mangle", Family.IP, "-m conntrack"),
        ("-m policy --dir out --pol none --tunnel-src 10.0.0.1/0.0.0.255", "mangle", Family.IP, "-m policy"),
        ("-d 10.0.0.0/8 -j NETMAP --to 10.0.0.0/255.0.0.255", "nat", Family.IP, "-j NETMAP"),
        ("-d fd00::/16 -j NETMAP --to fd00::/ff00::ffff", "nat", Family.IP6, "-j NETMAP"),
        ("-m srh --srh-lsid fd00::1/ffff::ffff -j DROP", "mangle", Family.IP6, "-m srh"),
    ],
)
def test_a_mask_that_versions_of_iptables_read_differently_is_kept(
    words: str, table: str, family: Family, reason: str
) -> None:
    text = dump(words, table)
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    assert write_save(ruleset) == text
    ((_, unknown),) = ruleset.unknowns()
    assert unknown.extension == reason
    assert unknown.reason.startswith(f'{reason} with the mask "')
    with pytest.raises(UnsupportedError, match="depends on the version of iptables"):
        lower(ruleset, level=0)


def test_what_is_unknown_of_a_rule_is_named() -> None:
    rule = read("-m osf --genre Linux -m realm --realm lab -j ULOG")
    assert rule.unknown == (
        Unknown(
            "-m osf is not modelled: nftables takes the first fingerprint that fits a packet, xt_osf any one"
            " of the genre; several genres have the same one",
            Hidden.TESTS,
            extension="-m osf",
        ),
        Unknown(
            '-m realm with the name of a realm, "lab", which only the node knows, is not modelled',
            Hidden.TESTS,
            extension="-m realm",
        ),
        Unknown(
            "-j ULOG is not modelled: Linux has had no ULOG since 3.17; NFLOG took its place",
            Hidden.EFFECT,
            extension="-j ULOG",
        ),
    )
    assert (rule.tests, rule.actions) == ((), ())


@pytest.mark.parametrize(
    ("words", "undecided"),
    [
        ("-m osf --genre Linux", False),
        ("-m osf --genre Linux -j LOG", False),
        ("-m osf --genre Linux -j NFLOG", False),
        ("-m osf --genre Linux -j ACCEPT", True),
        ("-m osf --genre Linux -m recent --set --name seen", True),
        ("-m osf --genre Linux -j ULOG", False),
        ("-j ULOG", False),
        ("-j CLUSTERIP --new --hashmode sourceip", True),
        ("-j ACCEPT", False),
    ],
)
def test_only_what_may_move_a_packet_leaves_a_rule_undecided(words: str, *, undecided: bool) -> None:
    assert read(words).is_undecided is undecided


@pytest.mark.parametrize(
    ("words", "spelled", "hides"),
    [
        ("-j DNAT [unsupported revision]", "-j DNAT", Hidden.ACTION),
        (
            "-p tcp -m tcp --dport 5 -m conntrack [unsupported revision] -j RETURN",
            "-m conntrack",
            Hidden.TESTS,
        ),
    ],
)
def test_options_that_iptables_save_could_not_print(words: str, spelled: str, hides: Hidden) -> None:
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {words}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules", family=Family.IP)
    reason = f"iptables-save could not print the options of {spelled} (unsupported revision)"
    assert [unknown for _, unknown in ruleset.unknowns()] == [Unknown(reason, hides)]
    with pytest.raises(UnsupportedError, match="could not print"):
        lower(ruleset, level=0)
    with pytest.raises(UnsupportedError, match="could not print"):
        write_save(ruleset)


def test_options_that_could_not_be_printed_stand_behind_the_name() -> None:
    with pytest.raises(ParseError, match="an option was expected here"):
        read("-m conntrack --ctstate NEW [unsupported revision] -j DROP")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-m limmit --limit 5/min", 'unknown match "limmit"; did you mean limit'),
        ("-m osf --gender Linux", 'unknown option "--gender"'),
        ("-m osf --genre", '"--genre" needs a value'),
        ("-m osf --genre a --genre b", '"--genre" is given twice'),
        ("-j TEE ! --gateway 10.0.0.1", '"--gateway" cannot be negated'),
        ("-m hl --hl-eq 5", 'match "hl" does not belong to IPv4'),
        ("-j HL --hl-set 5", 'target "HL" does not belong to IPv4'),
        ("-g TEE", '"TEE" is a target; -g needs a chain'),
    ],
)
def test_what_iptables_does_not_take_is_refused(words: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(words)
    assert message in str(caught.value)


def test_no_extension_is_both_modelled_and_not() -> None:
    assert not MATCHES.keys() & UNMODELLED_MATCHES.keys()
    assert not TARGETS.keys() & UNMODELLED_TARGETS.keys()
