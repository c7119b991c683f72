"""Virtual services are anonymised like all other files of a snapshot."""

from __future__ import annotations

import pytest

from backends.model.ipvs import read_table
from harness.files.errors import CaptureError
from nfparity.capture.anonymise.ipvstext import anonymise_services
from nfparity.capture.anonymise.mapping import Mapping
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.kubeproxy import KubeProxyState, recover
from nfparity.kubeproxy.service import Service
from tests.unit.nfparity.capture.anonymise.helpers.originals import Original
from translate.ir import Family, format_address, parse_address
from translate.read import read_ipsets, read_ruleset, with_sets

KEY = bytes(range(32))


def state_of(files: dict[str, bytes]) -> KubeProxyState:
    ruleset = read_ruleset(files["iptables-save"], name="iptables-save")
    sets = read_ipsets(files["ipset-save"], name="ipset-save")
    return recover(with_sets(ruleset, sets), ipvs=read_table(files["ipvs-save"], name="ipvs-save"))


def test_the_recovered_services_are_the_same_at_other_addresses() -> None:
    files = Original("kube-ipvs/rules.iptables-save", "kube-ipvs/node.json").files()
    made, mapping = anonymise(files, KEY)
    before, after = state_of(files), state_of(made)
    assert b"10.96.0.10:53" not in made["ipvs-save"]
    assert len(after.services) == len(before.services)
    assert {shape(s, mapping) for s in before.services} == {shape(s, None) for s in after.services}
    assert after.health_check_ports == before.health_check_ports


def shape(service: Service, mapping: Mapping | None) -> tuple[object, ...]:
    """Return the facts of a service, at the addresses that the mapping gives it."""

    def moved(address: int) -> int:
        text = format_address(Family.IP, address)
        return address if mapping is None else parse_address(Family.IP, mapping.address(text))

    own = {address for address in (service.cluster_ip, *service.external_addresses) if address is not None}
    return (
        frozenset(map(moved, own)),
        service.port,
        service.node_port,
        service.protocol,
        frozenset((moved(e.address), e.port, e.local) for e in service.endpoints),
        service.affinity,
        service.external_local,
        len(service.source_ranges or ()),
    )


@pytest.mark.parametrize("line", ["-A -t kube-dns:domain -s rr", "TCP 0A600001:01BB rr"])
def test_what_ipvsadm_does_not_print_is_refused(line: str) -> None:
    with pytest.raises(CaptureError, match="line 1 is not output of ipvsadm-save"):
        anonymise_services(f"{line}\n", Mapping(KEY))
