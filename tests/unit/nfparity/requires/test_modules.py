"""Names of modules against the aliases that real kernels declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.variant import Variant
from nfparity.requires.modules import helper_module, match_module, set_module, table_modules, target_module
from translate.ir import Family, SetType, TableName
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_MATCHES, UNMODELLED_TARGETS

KERNELS = ("6.1", "6.12")
GONE = {"ipt_ULOG"}
"""Targets of iptables 1.8.9 that neither kernel has."""
PREFIXES = {Family.IP: "ipt", Family.IP6: "ip6t"}


def aliases(kernel: str) -> dict[str, str]:
    """Return the module of each alias and of each module's own name."""
    made = {}
    for line in Path(__file__).with_name(f"modules-{kernel}.txt").read_text().splitlines():
        if not line.startswith("#"):
            module, _, names = line.partition(":")
            made.update(dict.fromkeys((module, *names.split()), module))
    return made


def known(kernel: str, family: Family) -> dict[str, str]:
    return {
        alias.removeprefix(f"{PREFIXES[family]}_"): module
        for alias, module in aliases(kernel).items()
        if alias.startswith(f"{PREFIXES[family]}_") and alias != "ip6t_NPT"  # no target is called NPT
    }


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_alias_of_a_kernel_leads_to_its_module(kernel: str, family: Family) -> None:
    for name, module in known(kernel, family).items():
        got = target_module(name, family) if name[0].isupper() else match_module(name, family)
        if name in ("icmp", "icmp6") and kernel == "6.1":
            assert module in ("ip_tables", "ip6_tables")
            continue
        assert got == module, name


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_extension_that_is_read_is_in_a_kernel(kernel: str) -> None:
    modules = set(aliases(kernel).values())
    later = {"ipt_CLUSTERIP"} if kernel == "6.12" else set()
    for family in Family:
        for name, match in {**MATCHES, **UNMODELLED_MATCHES}.items():
            if match.family in (None, family):
                assert match_module(name, family) in modules, name
        for name, target in {**TARGETS, **UNMODELLED_TARGETS}.items():
            if target.family in (None, family):
                module = target_module(name, family)
                assert module is None or module in modules | GONE | later, name


def test_set_types() -> None:
    for kernel in KERNELS:
        there = aliases(kernel)
        for kind in SetType:
            assert there[f"ip_set_{kind.value}"] == set_module(kind.value)


def test_tables_of_both_variants() -> None:
    assert table_modules(TableName.NAT, Family.IP6, Variant.LEGACY) == ("ip6_tables", "ip6table_nat")
    assert table_modules(TableName.NAT, Family.IP, Variant.NFT) == (
        "nf_tables",
        "nft_compat",
        "nft_chain_nat",
    )
    assert table_modules(TableName.RAW, Family.IP, Variant.NFT) == ("nf_tables", "nft_compat")


def test_helpers() -> None:
    assert helper_module("ftp") == "nf_conntrack_ftp"
    assert helper_module("netbios-ns") == "nf_conntrack_netbios_ns"
    assert helper_module("Q.931") == "nf_conntrack_h323"
