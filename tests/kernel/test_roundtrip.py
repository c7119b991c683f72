"""The kernel's version of our text, and our version of the kernel's.

``tests/corpus/rulesets/every-option`` spells every option that is read in ways of its own. iptables
loads it into the kernel and saves it again in its one canonical way.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from backends.testbed.command import find_tool
from translate.errors import ParseError
from translate.ir import Action, Family, Ruleset, Test
from translate.read import read_ruleset
from translate.write import write_save

RULES = Path(__file__).parent.parent / "corpus" / "rulesets"
COMMANDS = {Family.IP: "iptables", Family.IP6: "ip6tables"}
CASES = [
    pytest.param(Family.IP, "every-option/ip.rules", id="every-option-ip"),
    pytest.param(Family.IP6, "every-option/ip6.rules", id="every-option-ip6"),
    pytest.param(Family.IP, "every-option/queue.rules", id="every-option-queue"),
    pytest.param(Family.IP, "kind-node/rules.iptables-save", id="kind-node"),
]


def load_and_save(family: Family, variant: str, text: bytes, *, before: str = "true") -> bytes:
    """Load ``text`` in a network namespace that ends with the command, and return the save."""
    command = f"{COMMANDS[family]}-{variant}"
    for tool in ("unshare", f"{command}-restore"):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    script = f"{before} && {command}-restore -c && {command}-save -c"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script], input=text, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def without_date(text: bytes) -> bytes:
    return re.sub(rb"(?m)^# .* on .*$", b"#", text)


def meaning(ruleset: Ruleset) -> dict[str, list[tuple[tuple[Test, ...], tuple[Action, ...]]]]:
    return {
        f"{table.name} {chain.name} {chain.policy}": [(rule.tests, rule.actions) for rule in chain.rules]
        for table in ruleset.tables
        for chain in table.chains
    }


@pytest.mark.parametrize(("family", "file"), CASES)
@pytest.mark.parametrize("variant", ["legacy", "nft"])
def test_what_the_kernel_saves_comes_back_to_the_byte(family: Family, file: str, variant: str) -> None:
    data = (RULES / file).read_bytes()
    if variant == "nft":  # whose kernel refuses a comparison with nothing, which never holds
        data = re.sub(rb"(?m)^-A \w+ ! -s (0|::)/0.*\n", b"", data)
    saved = load_and_save(family, variant, data)
    ruleset = read_ruleset(saved, name="saved", family=family)
    assert write_save(ruleset, counters=True).encode() == saved


@pytest.mark.parametrize(("family", "file"), CASES)
def test_the_kernel_takes_our_text_for_the_same_rules(family: Family, file: str) -> None:
    data = (RULES / file).read_bytes()
    written = write_save(read_ruleset(data, name=file, family=family), counters=True).encode()
    assert without_date(load_and_save(family, "legacy", written)) == without_date(
        load_and_save(family, "legacy", data)
    )


@pytest.mark.parametrize(("family", "file"), CASES)
def test_iptables_understands_each_spelling_as_we_do(family: Family, file: str) -> None:
    data = (RULES / file).read_bytes()
    saved = load_and_save(family, "legacy", data)
    ours = meaning(read_ruleset(data, name=file, family=family))
    assert ours == meaning(read_ruleset(saved, name="saved", family=family))
    assert any(ours.values())


@pytest.mark.parametrize("variant", ["legacy", "nft"])
def test_sets_come_back_to_the_byte(variant: str) -> None:
    if find_tool("ipset") is None:
        pytest.skip("needs ipset")
    rules = [
        "-A INPUT -m set --match-set hosts src -j ACCEPT",
        "-A INPUT -m set ! --match-set pairs src,dst -m set --match-set hosts dst -j DROP",
    ]
    text = "\n".join(["*filter", ":INPUT ACCEPT [0:0]", *rules, "COMMIT", ""])
    sets = "ipset create hosts hash:ip && ipset create pairs hash:ip,port"
    saved = load_and_save(Family.IP, variant, text.encode(), before=sets)
    assert all(f"[0:0] {rule}" in saved.decode().splitlines() for rule in rules)
    assert write_save(read_ruleset(saved, name="saved"), counters=True).encode() == saved


@pytest.mark.parametrize(
    "line",
    [
        "-A INPUT -m tcp --dport 5",
        "-A INPUT -p tcp --dport 9:5",
        "-A INPUT -s 10.0.0.0/33",
        "-A INPUT -i a-name-of-sixteen",
        "-A INPUT ! -p all",
        "-A INPUT -o eth0",
        "-A INPUT -j FORWARD",
        "-A INPUT -j nowhere",
        "-A INPUT -g ACCEPT",
        "-A INPUT -j DNAT --to-destination 1.2.3.4",
        "-A INPUT -j REJECT --reject-with tcp-reset",
        "-A INPUT -j NOTRACK",
        "-A INPUT -m addrtype --dst-type LOCAL --limit-iface-out",
        "-A INPUT -m multiport --dports 1",
        "-A INPUT -p tcp -m multiport --dports 1:2,3:4,5:6,7:8,9:10,11:12,13:14,15:16",
        "-A INPUT -m recent --set --seconds 3",
        "-A INPUT -m recent --update --hitcount 65536",
        "-A INPUT -m statistic --mode nth --every 3 --packet 3",
        "-A INPUT -m statistic --mode random --probability 1.5",
        "-A INPUT -m conntrack --ctstate BROKEN",
        "-A INPUT -p icmp -m icmp --icmp-type 256",
        "-A INPUT -m mark --mark 0x100000000",
        "-A INPUT -m comment",
        "-A INPUT -f -f",
        "-A INPUT -j one",
    ],
)
def test_what_we_refuse_iptables_refuses(line: str) -> None:
    """Not a law (we refuse more), but for these the kernel or iptables is the reason."""
    text = (
        f"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:one - [0:0]\n{line}\n-A one -j one\nCOMMIT\n"
    )
    if line != "-A INPUT -j one":
        text = text.replace("-A one -j one\n", "")
    with pytest.raises(ParseError, match=r"^rules:\d+"):
        read_ruleset(text.encode(), name="rules")
    command = ["unshare", "-n", "iptables-legacy-restore"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, timeout=60)
    assert done.returncode != 0
