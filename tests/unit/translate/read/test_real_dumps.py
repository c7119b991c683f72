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

READ: dict[str, tuple[int, dict[str, int]]] = {
    "calico-ipvs-node-excerpt": (15, {}),
    "docker-lxc-host": (23, {}),
    "docker-topos4.1": (36, {}),
    "ftp-gateway-ct-helper": (18, {}),
    "gateway-nat-chapter09": (8, {}),
    "home-user": (218, {}),
    "istio-sidecar-dns": (29, {}),
    "istio-sidecar-tproxy": (31, {}),
    "kind-1.23-traefik-node": (71, {}),
    "kuma-debian12-multi": (33, {}),
    "kuma-rhel9-multi-ip6": (31, {}),
    "libvirt-testbed-dnat": (67, {}),
    "medium-sized-company": (598, {}),
    "memphis-testbed": (34, {}),
    "openwrt-aa": (48, {}),
    "pastebin-bbWXHaTn": (40, {}),
    "sargon": (81, {}),
    "shorewall-sqrl-2014": (404, {}),
    "synology-ip6-2016": (47, {}),
    "tor-transparent-onionrouter": (3, {}),
    "tum-net-lab-2015-09-macfilled": (4973, {}),
    "ufw-server2": (68, {}),
}
"""The dumps that are read in full.

For each, the number of rules, and the extensions that are not modelled with the number of their rules.
"""

REFUSED = {
    "hidekiai-home-router": {"option --reject-with": 3},
    "istio-ambient-ztunnel-kind": {
        "chain KUBE-SERVICES": 2,
        "chain KUBE-POSTROUTING": 1,
        "chain KIND-MASQ-AGENT": 1,
    },
    "linux-gda-pl": {"option --days": 4},
}
"""Rules of the others that iptables refuses, too."""

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
    rules, kept = READ[stem]
    assert sum(len(chain.rules) for table in ruleset.tables for chain in table.chains) == rules
    assert Counter(unknown.extension for _, unknown in ruleset.unknowns()) == kept
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
    assert found == REFUSED[stem]


def test_an_excerpt_that_jumps_to_chains_it_does_not_show_is_read_as_a_fragment() -> None:
    """As iptables-restore would refuse it by itself; what is missing is refused by rule."""
    ruleset = read("istio-ambient-ztunnel-kind", InputForm.RESTORE)
    with pytest.raises(UnsupportedError) as caught:
        lower(ruleset, level=0)
    reasons = {refusal.reason for refusal in caught.value.refusals}
    assert "chain KUBE-SERVICES is not shown" in reasons
    assert all(refusal.origin.line for refusal in caught.value.refusals)
