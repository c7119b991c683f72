"""The options that no nftables rule can express, each with the reason: the ceiling of docs/options.md.

``python -m tests.lab.ceiling`` prints the list. A test compares it with the table of
:mod:`tests.lab.options`: every option that the translation never takes is in :data:`INEXPRESSIBLE`, and no
other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final

from nfparity.inputs.rules import load_rules
from tests.lab.options import SAMPLES, Status, Support, Use, options

__all__ = ["INEXPRESSIBLE", "markdown", "never_translated"]

_ESTIMATOR: Final = "nf_tables has no estimators of rates"
_IPVS: Final = "nf_tables reads nothing of an IPVS connection"
_STATES: Final = "`ipsec` of nft reads keys, addresses and reqid of a state, not its protocol or mode"
_TUNNELS: Final = (
    "they need `--mode tunnel`, and `ipsec` of nft also reads the addresses of states in mode BEET"
)
_FIRST_FINGERPRINT: Final = (
    "`osf` of nft takes the first fingerprint that fits a packet, xt_osf any one of the genre; several genres"
    " of `pf.os` have the same one"
)
_BRIDGE: Final = "tables of ip and ip6 see the bridge, not its ports"
_CONNTRACK_AFTER: Final = "nf_tables sets it after conntrack, when the rules of raw have run"

INEXPRESSIBLE: Final[Mapping[str, Mapping[str, str]]] = {
    "-m bpf": dict.fromkeys(("--bytecode", "--object-pinned"), "nf_tables runs no BPF program"),
    "-m dccp": {
        "--dccp-option": "nft 1.0.6 of Debian 12 reads no options; `dccp option` of later ones takes options"
        " 2 to 31 for single bytes, xt_dccp for longer ones"
    },
    "-m dst": {
        "--dst-opts": "nft reads the length of the header; the place of its options depends on other headers"
    },
    "-m eui64": {"": "nft compares a field with constants, not with another field"},
    "-m hashlimit": dict.fromkeys(
        ("--hashlimit-rate-match", "--hashlimit-rate-interval"),
        "nf_tables has token buckets, and no rate averaged over an interval",
    ),
    "-m ipvs": dict.fromkeys(
        ("--ipvs", "--vproto", "--vaddr", "--vport", "--vdir", "--vmethod", "--vportctl"), _IPVS
    ),
    "-m osf": {
        **dict.fromkeys(("--genre", "--ttl"), _FIRST_FINGERPRINT),
        "--log": "`osf` of nft writes no log",
    },
    "-m owner": {
        "--suppl-groups": "nft reads the group that opened the socket, not the others of the process",
    },
    "-m physdev": dict.fromkeys(("--physdev-in", "--physdev-out"), _BRIDGE),
    "-m policy": {
        **dict.fromkeys(("--proto", "--mode"), _STATES),
        **dict.fromkeys(("--tunnel-src", "--tunnel-dst"), _TUNNELS),
    },
    "-m rateest": {
        f"--rateest{rest}": _ESTIMATOR
        for rest in (
            *("", "1", "2", "-delta", "-bps", "-bps1", "-bps2", "-pps", "-pps1", "-pps2"),
            *("-lt", "-gt", "-eq"),
        )
    },
    "-m recent": {"--rttl": "nft compares a field with constants, not with the data of an element"},
    "-m rt": {"--rt-0-not-strict": "nft reads the first two addresses, and searches no list of them"},
    "-j CLUSTERIP": dict.fromkeys(
        ("--new", "--hashmode", "--clustermac", "--total-nodes", "--local-node", "--hash-init"),
        "nf_tables answers no ARP request for a shared address",
    ),
    "-j CT": dict.fromkeys(("--timeout", "--ctevents", "--expevents"), _CONNTRACK_AFTER),
    **{
        f"-j {name}": dict.fromkeys(
            ("--src-pfx", "--dst-pfx"), "nft adjusts no word of an address so that checksums stay valid"
        )
        for name in ("DNPT", "SNPT")
    },
    "-j HMARK": dict.fromkeys(
        (
            *("--hmark-tuple", "--hmark-src-prefix", "--hmark-dst-prefix", "--hmark-sport-mask"),
            *("--hmark-dport-mask", "--hmark-spi-mask", "--hmark-sport", "--hmark-dport", "--hmark-spi"),
            *("--hmark-proto-mask", "--hmark-rnd", "--hmark-mod", "--hmark-offset"),
        ),
        "`jhash` of nft hashes its fields in a fixed order, HMARK the lower address first",
    ),
    "-j IDLETIMER": dict.fromkeys(("--timeout", "--label", "--alarm"), "nf_tables has no such timers"),
    "-j LED": dict.fromkeys(
        ("--led-trigger-id", "--led-delay", "--led-always-blink"), "nf_tables has no LED triggers"
    ),
    "-j RATEEST": dict.fromkeys(("--rateest-name", "--rateest-interval", "--rateest-ewmalog"), _ESTIMATOR),
    "-j SET": dict.fromkeys(
        ("--map-set", "--map-mark", "--map-prio", "--map-queue"),
        "elements of an nft set have no mark, class and queue in common",
    ),
    "-j SYNPROXY": {"--ecn": "`synproxy` of nft has no such option"},
}
"""The reasons, by extension and option. An option of which only some values are possible is not here."""


def never_translated(table: Mapping[Use, Mapping[str, Support]]) -> Iterator[Use]:
    """Yield the options of which no sample rule is translated to nftables."""
    for use, cells in table.items():
        if cells["nftables"].status is Status.REFUSED:
            yield use


def markdown(table: Mapping[Use, Mapping[str, Support]]) -> str:
    """Return the number of options that nft can express, and the list of those that it cannot."""
    inexpressible = sum(map(len, INEXPRESSIBLE.values()))
    taken = dict.fromkeys(Status, 0)
    for cells in table.values():
        taken[cells["nftables"].status] += 1
    present = len(table) - taken[Status.GONE]
    possible = present - inexpressible
    exact, conditional = taken[Status.EXACT], taken[Status.CONDITION]
    lines = [
        f"Of {present} options that a kernel has, nft has an expression for {possible}"
        f" ({possible / present:.0%}), at least for some of their values. Of these, {exact}"
        f" ({exact / possible:.0%}) are exact in all samples, and {conditional}"
        f" ({conditional / possible:.0%}) in some.",
        "",
        "| match or target | options that nft cannot express | reason |",
        "| --- | --- | --- |",
        *_rows(INEXPRESSIBLE),
    ]
    return "\n".join(lines) + "\n"


def _rows(listed: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a row for each reason of each extension."""
    for extension, reasons in listed.items():
        for reason in dict.fromkeys(reasons.values()):
            names = [f"`{name}`" if name else "(none)" for name, each in reasons.items() if each == reason]
            yield f"| `{extension}` | {', '.join(names)} | {reason} |"


def main() -> int:
    """Print the list."""
    sys.stdout.write(markdown(options([load_rules(path) for path in SAMPLES])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
