"""Other people's dumps: each is read, or refused by its rules, with place and reason."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from translate.errors import ParseError, UnsupportedError
from translate.ir import Ruleset
from translate.passes import lower
from translate.read import InputForm, read_ruleset
from translate.write import write_save

DUMPS = Path(__file__).resolve().parents[5] / "shared/corpora/real-dumps"

pytestmark = pytest.mark.skipif(not DUMPS.is_dir(), reason="needs the public dumps beside the project")

READ = {
    "calico-ipvs-node-excerpt": 15,
    "docker-lxc-host": 23,
    "docker-topos4.1": 36,
    "ftp-gateway-ct-helper": 18,
    "gateway-nat-chapter09": 8,
    "kind-1.23-traefik-node": 71,
    "medium-sized-company": 598,
    "sargon": 81,
    "tor-transparent-onionrouter": 3,
}
"""How many rules each dump has that is read whole."""

REFUSED = {
    "hidekiai-home-router": {"match limit": 17, "option --reject-with": 3},
    "home-user": {"match pkttype", "match hashlimit", "match owner", "match connlimit", "target TCPMSS"},
    "istio-ambient-ztunnel-kind": {
        "chain KUBE-SERVICES": 2,
        "chain KUBE-POSTROUTING": 1,
        "chain KIND-MASQ-AGENT": 1,
    },
    "istio-sidecar-dns": {"match owner": 12, "option --zone": 2},
    "istio-sidecar-tproxy": {"match owner": 8, "target TPROXY": 1},
    "kuma-debian12-multi": {"match owner": 9, "option --zone": 2},
    "kuma-rhel9-multi-ip6": {"match owner": 9, "option --zone": 2},
    "libvirt-testbed-dnat": {"target CHECKSUM": 4},
    "linux-gda-pl": {"match mac": 12, "match time": 4},
    "memphis-testbed": {"match limit": 3},
    "openwrt-aa": {"match limit": 1},
    "pastebin-bbWXHaTn": {"match limit": 2},
    "shorewall-sqrl-2014": {"option --helper", "target CHECKSUM"},
    "synology-ip6-2016": {"match limit": 4},
    "tum-net-lab-2015-09-macfilled": {"match mac", "match limit"},
    "ufw-server2": {"match limit": 7},
}
"""What is not read of the others: how many rules for each, or just what where more is wrong than is shown."""

_WHAT = re.compile(
    r"(?:unknown (match|option)|(target|option)|no (chain) and no target is called)"
    r' "([^"]+)"(?: is not read)?'
)


def read(stem: str, form: InputForm | None = None) -> Ruleset:
    path = DUMPS / f"{stem}.iptables-save"
    return read_ruleset(path.read_bytes(), name=path.name, form=form)


def test_every_dump_is_accounted_for() -> None:
    assert {path.name.removesuffix(".iptables-save") for path in DUMPS.iterdir()} == {*READ, *REFUSED}


@pytest.mark.parametrize("stem", sorted(READ))
def test_read(stem: str) -> None:
    ruleset = read(stem)
    assert sum(len(chain.rules) for table in ruleset.tables for chain in table.chains) == READ[stem]
    written = write_save(ruleset)
    assert write_save(read_ruleset(written.encode(), name="again", family=ruleset.family)) == written


@pytest.mark.parametrize("stem", sorted(REFUSED))
def test_refused(stem: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(stem)
    found: Counter[str] = Counter()
    for fault in caught.value.diagnostics:
        assert fault.origin.line
        what = _WHAT.match(fault.message)
        if what is None:
            assert re.fullmatch(r"and \d+ more from here on", fault.message)
        else:
            found[f"{what[1] or what[2] or what[3]} {what[4]}"] += 1
    wanted = REFUSED[stem]
    assert (dict(found) if isinstance(wanted, dict) else set(found)) == wanted


def test_an_excerpt_that_jumps_to_chains_it_does_not_show_is_read_as_a_fragment() -> None:
    """As iptables-restore would refuse it by itself; what is missing is refused by rule."""
    ruleset = read("istio-ambient-ztunnel-kind", InputForm.RESTORE)
    with pytest.raises(UnsupportedError) as caught:
        lower(ruleset, level=0)
    reasons = {refusal.reason for refusal in caught.value.refusals}
    assert "chain KUBE-SERVICES is not shown" in reasons
    assert all(refusal.origin.line for refusal in caught.value.refusals)
