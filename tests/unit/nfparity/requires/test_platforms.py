"""The modules of platforms and of lists."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from backends.model.variant import Variant
from nfparity.requires import (
    Presence,
    kube_proxy_needs,
    listed_modules,
    platform_modules,
    platform_names,
    rules_needs,
    translation_needs,
)
from translate.condense import emit_nft, lower
from translate.errors import InputError, ParseError
from translate.gaps import translate_with_gaps
from translate.ir import Family
from translate.read import read_ruleset

DUMPS = Path(__file__).resolve().parents[5] / "shared/corpora/real-dumps"
DEBIAN = {"debian-12": "6.1", "debian-13": "6.12"}


def real(kernel: str) -> set[str]:
    lines = Path(__file__).with_name(f"modules-{kernel}.txt").read_text().splitlines()
    return {line.partition(":")[0] for line in lines if not line.startswith("#")}


@pytest.mark.parametrize("name", DEBIAN)
def test_debian_is_as_its_package(name: str) -> None:
    machine, there = platform_modules(name), real(DEBIAN[name])
    everywhere = real("6.1") | real("6.12") | {"ipt_ULOG"}
    for module in everywhere - {"nft_objref"}:  # part of nf_tables since Linux 6.2
        assert (machine.presence(module) is Presence.PRESENT) == (module in there), module


@pytest.mark.parametrize("name", platform_names())
def test_every_pattern_means_a_module(name: str) -> None:
    machine = platform_modules(name)
    assert machine.sources
    every = real("6.1") | real("6.12")
    elsewhere = {"ipt_ULOG", "br_netfilter", "nft_flow_offload", "nft_reject_netdev"}
    for pattern in (*machine.absent, *machine.optional):
        there = any(fnmatchcase(module, pattern) for module in every | elsewhere)
        assert there or pattern.startswith("nf_conntrack_"), pattern
    assert bool(machine.optional) == bool(machine.package)


def test_optional_and_absent_modules() -> None:
    machine = platform_modules("rhel-10")
    assert machine.presence("xt_comment") is Presence.OPTIONAL
    assert machine.presence("nft_compat") is Presence.OPTIONAL
    assert machine.presence("xt_u32") is Presence.ABSENT
    assert machine.presence("nft_ct") is Presence.PRESENT


def test_an_unknown_platform_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no platform 'windows' is known\. Known are debian-12.*--modules"):
        platform_modules("windows")


def test_a_platform_without_a_trustworthy_list_is_refused_by_name() -> None:
    why = r"^the modules of Amazon Linux 2023 with Linux 6\.18 are not known: no public copy"
    with pytest.raises(InputError, match=why):
        platform_modules("amazon-linux-2023-6.18")
    assert "amazon-linux-2023-6.18" not in platform_names()


@pytest.mark.parametrize(
    ("platform", "module", "presence"),
    [
        ("rhel-9", "xt_time", Presence.ABSENT),
        ("rhel-9", "iptable_nat", Presence.PRESENT),
        ("ubuntu-22.04", "ipt_CLUSTERIP", Presence.PRESENT),
        ("ubuntu-24.04", "ipt_CLUSTERIP", Presence.ABSENT),
        ("flatcar-6.12", "nft_connlimit", Presence.ABSENT),
        ("flatcar-6.12", "xt_connlimit", Presence.PRESENT),
        ("bottlerocket-6.12", "xt_dccp", Presence.ABSENT),
        ("bottlerocket-6.12", "nft_socket", Presence.PRESENT),
        ("amazon-linux-2023", "ip_tables", Presence.PRESENT),
        ("amazon-linux-2023", "nft_flow_offload", Presence.PRESENT),
        ("amazon-linux-2023", "ipt_CLUSTERIP", Presence.PRESENT),
        ("amazon-linux-2023", "xt_dccp", Presence.ABSENT),
    ],
)
def test_modules_of_the_configurations(platform: str, module: str, presence: Presence) -> None:
    assert platform_modules(platform).presence(module) is presence


@pytest.mark.parametrize("name", platform_names())
def test_kube_proxys_nftables_mode_has_its_modules_everywhere(name: str) -> None:
    machine = platform_modules(name)
    assert {machine.presence(need.module) for need in kube_proxy_needs(Family)} == {Presence.PRESENT}


LISTS = {
    "modules.order": "kernel/net/netfilter/xt_mark.ko\nkernel/net/netfilter/nf_tables.ko\n",
    "find": "/lib/modules/6.1.0/kernel/a/xt_mark.ko.xz\n/lib/modules/6.1.0/kernel/a/nf_tables.ko.zst\n",
    "lsmod": "Module    Size  Used by\nxt_mark    16384  1\nnf_tables 300 2 nft_ct,xt_mark\n",
    "names": "xt-mark\nnf_tables\n",
}


@pytest.mark.parametrize("form", LISTS)
def test_forms_of_a_list(form: str) -> None:
    machine = listed_modules(LISTS[form], name="list")
    assert machine.presence("xt_mark") is machine.presence("nf_tables") is Presence.PRESENT
    assert machine.presence("xt_comment") is Presence.ABSENT


@pytest.mark.parametrize("text", ["", "tun.ko\n", "\0\x1b[31m\n"])
def test_a_list_without_netfilter_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="lists no module of netfilter"):
        listed_modules(text, name="list")


def every_name() -> set[str]:
    """Return the names of all modules of both Debian kernels, with their aliases."""
    files = [Path(__file__).with_name(f"modules-{kernel}.txt") for kernel in DEBIAN.values()]
    lines = [line for file in files for line in file.read_text().splitlines() if not line.startswith("#")]
    return {word for line in lines for word in line.replace(":", " ").split()}


@pytest.mark.skipif(not DUMPS.is_dir(), reason="needs the public dumps beside the project")
def test_public_dumps_on_rhel_10() -> None:
    """docs/commands.md states these numbers."""
    machine, names = platform_modules("rhel-10"), every_name()
    dumps = package = lost = rules = 0
    for path in sorted(DUMPS.glob("*.iptables-save")):
        try:
            ruleset = read_ruleset(path.read_bytes(), name=path.name)
        except ParseError:
            continue  # a dump with damaged lines
        needs = rules_needs(ruleset, Variant.LEGACY)
        assert {n.module for n in needs if n.module.startswith(("xt_", "ipt_", "ip6t_", "ip_set"))} <= names
        lines: dict[Presence, set[int]] = {presence: set() for presence in Presence}
        for need in needs:
            lines[machine.presence(need.module)].update(rule.line for rule in need.rules)
        assert machine.presence("ip_tables") is Presence.ABSENT
        dumps += 1
        rules += sum(1 for _ in ruleset.rules())
        package += len(lines[Presence.OPTIONAL])
        lost += len(lines[Presence.ABSENT])
        output, _ = translate_with_gaps(ruleset, lambda given: emit_nft(lower(given, level=1)))
        for need in translation_needs(output.text):
            assert machine.presence(need.module) is Presence.PRESENT, need.module
    assert (dumps, rules, package, lost) == (22, 6876, 4023, 0)
