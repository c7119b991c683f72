"""Fields of connections in raw: refused beside templates, of which nftables reads only the state."""

from __future__ import annotations

import pytest

from translate import nft
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

COUNTED = "-A PREROUTING -m connbytes --connbytes 10 --connbytes-mode packets --connbytes-dir both -j ACCEPT"


def emitted(table: str, *rules: str, level: int) -> str:
    text = "\n".join((f"*{table}", ":PREROUTING ACCEPT [0:0]", *rules, "COMMIT", ""))
    return nft.emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=level)).text


ZONE = "-A PREROUTING -p udp -j CT --zone 1"


@pytest.mark.parametrize(
    "reader",
    [
        "-A PREROUTING -m conntrack --ctdir ORIGINAL -j ACCEPT",
        "-A PREROUTING -m conntrack ! --ctstate SNAT -j ACCEPT",
        "-A PREROUTING -m connmark --mark 0x0 -j ACCEPT",
        "-A PREROUTING -m connlabel --label 1 -j ACCEPT",
        "-A PREROUTING -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff",
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_what_reads_a_template(reader: str, level: int) -> None:
    with pytest.raises(UnsupportedError) as error:
        emitted("raw", ZONE, reader, level=level)
    assert [(r.feature, r.origin.text) for r in error.value.refusals] == [("template-fields", reader)]
    assert "accept" in emitted("raw", ZONE, "-A PREROUTING -m conntrack --ctstate NEW -j ACCEPT", level=level)
    other_hook = reader.replace("PREROUTING", "OUTPUT")
    assert "chain raw_OUTPUT" in emitted("raw", ":OUTPUT ACCEPT [0:0]", ZONE, other_hook, level=level)


@pytest.mark.parametrize("level", [0, 2])
def test_beside_templates_alone(level: int) -> None:
    assert "ct packets" in emitted("raw", "-A PREROUTING -p udp -j NOTRACK", COUNTED, level=level)
    assert "ct packets" in emitted("mangle", COUNTED, level=level)
    with pytest.raises(UnsupportedError) as error:
        emitted("raw", ZONE, COUNTED, level=level)
    (refusal,) = error.value.refusals
    assert (refusal.feature, refusal.origin.text) == ("template-fields", COUNTED)
