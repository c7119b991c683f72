from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import Account, Action, Field, FieldTest, Interval, Log, LogDetail, NfLog, Rule
from translate.read import read_ruleset
from translate.write import write_save


def read(options: str) -> Rule:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {options}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    assert write_save(ruleset) == text
    return ruleset.tables[0].chains[0].rules[0]


@pytest.mark.parametrize(
    ("options", "action"),
    [
        ("LOG", Log("", 4)),
        ("LOG --log-level info", Log("", 6)),
        ('LOG --log-prefix "two words: " --log-level 7', Log("two words: ", 7)),
        (f"LOG --log-prefix {'x' * 30}", Log("x" * 29, 4)),
        (f'LOG --log-prefix "{"x" * 28}é"', Log("x" * 28 + "\udcc3", 4)),
        ("LOG --log-level 0x7", Log("", 7)),
        ("NFLOG --nflog-range 5", NfLog(prefix="", group=0)),
        (f"NFLOG --nflog-prefix {'x' * 64}", NfLog(prefix="x" * 63, group=0)),
        ("NFLOG --nflog-threshold 0", NfLog(prefix="", group=0)),
        ("LOG --log-uid --log-tcp-sequence", Log("", 4, (LogDetail.TCP_SEQUENCE, LogDetail.UID))),
        ("NFLOG", NfLog(prefix="", group=0)),
        (
            "NFLOG --nflog-prefix seen --nflog-group 5 --nflog-size 80 --nflog-threshold 3",
            NfLog(prefix="seen", group=5, size=80, threshold=3),
        ),
    ],
)
def test_logs(options: str, action: Action) -> None:
    assert read(f"-j {options}").actions == (action,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("LOG --log-level loud", 'unknown log level "loud"'),
        ("LOG --log-level 8", 'unknown log level "8"'),
        ('LOG --log-prefix ""', "a prefix needs at least one character"),
        ("LOG --log-level warn", 'unknown log level "warn"'),
        ("NFLOG --nflog-group 65536", '"--nflog-group" is at most 65535'),
        ("NFLOG --nflog-range 5 --nflog-size 5", "--nflog-range has no effect"),
    ],
)
def test_wrong_logs(options: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(f"-j {options}")


def test_nfacct() -> None:
    assert read("-m nfacct --nfacct-name dropped_pkts").tests == (Account(name="dropped_pkts"),)
    assert read(f"-m nfacct --nfacct-name {'x' * 32}").tests == (Account(name="x" * 31),)
    with pytest.raises(ParseError, match="at least one character"):
        read('-m nfacct --nfacct-name ""')
    with pytest.raises(ParseError, match='nfacct needs the option "--nfacct-name"'):
        read("-m nfacct")


def test_iprange() -> None:
    low, high = 0x0A000001, 0x0A000005
    assert read("-m iprange --src-range 10.0.0.1-10.0.0.5 ! --dst-range 10.0.0.5").tests == (
        FieldTest(field=Field.SADDR, values=(Interval(low, high),)),
        FieldTest(field=Field.DADDR, values=(Interval(high, high),), negated=True),
    )
    never = FieldTest(field=Field.SADDR, values=(Interval(0, 0xFFFFFFFF),), negated=True)
    assert read("-m iprange --src-range 10.0.0.5-10.0.0.1").tests == (never,)
    with pytest.raises(ParseError, match="iprange needs --src-range or --dst-range"):
        read("-m iprange")
