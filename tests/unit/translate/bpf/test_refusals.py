"""Each thing that a tc program refuses: a rule with it is refused by name, file and line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import translate.bpf
from translate.bpf import REFUSED, emit
from translate.bpf.emit import MOST_STATEMENTS
from translate.bpf.layout.tables import ARGUMENTS
from translate.bpf.refusals import CannotExpress
from translate.errors import UnsupportedError
from translate.ir import (
    Accept,
    Action,
    Apply,
    Dnat,
    Entry,
    Family,
    Field,
    FieldTest,
    Interval,
    Lookup,
    Name,
    NatPorts,
    Origin,
    Program,
    Proxy,
    Queue,
    Reject,
    RejectKind,
    SetMark,
    Statement,
    Template,
)
from translate.passes import lower
from translate.read import read_ipsets, read_ruleset, with_sets

HERE = Origin("rules", 3)
RECENT = "-m recent --name a --{} --mask 255.255.255.255 --rsource -j DROP"
Case = Callable[[], Program]


def rules(*lines: str, family: Family = Family.IP, level: int = 1, hook: str = "FORWARD") -> Case:
    """Rules in a built-in chain, the first of them on line 3."""
    appended = (f"-A {hook} {one}" for one in lines)
    table = "mangle" if hook == "PREROUTING" else "filter"
    text = "\n".join((f"*{table}", f":{hook} ACCEPT [0:0]", *appended, "COMMIT", ""))
    return lambda: lower(read_ruleset(text.encode(), name="rules", family=family), level=level)


def listing() -> Program:
    """``iptables -L`` without ``-v`` does not say which interfaces a rule asks."""
    text = (
        "Chain FORWARD (policy ACCEPT)\n"
        "target     prot opt source               destination\n"
        "DROP       all  --  anywhere             anywhere\n"
    )
    return lower(read_ruleset(text.encode(), name="rules"), level=1)


def lowered(statement: Statement) -> Case:
    """Return a Program with a statement that no rule is read as."""

    def made() -> Program:
        program = rules("-j ACCEPT")()
        chains = (replace(chain, statements=(statement,)) for chain in program.chains)
        return replace(program, chains=tuple(chains))

    return made


def with_set(line: str, ipset: str) -> Case:
    """One rule, with an ipset."""
    text = "\n".join(("*filter", ":FORWARD ACCEPT [0:0]", f"-A FORWARD {line}", "COMMIT", ""))
    ruleset = read_ruleset(text.encode(), name="rules")
    return lambda: lower(with_sets(ruleset, read_ipsets(f"{ipset}\n".encode(), name="sets")), level=1)


def does(action: Action) -> Case:
    return lowered(Apply(origin=HERE, tests=(), actions=(action,)))


LONG = "recent --name a --rcheck --seconds 60 --mask 255.255.255.255 --rsource -j ACCEPT"
CASES: dict[str, tuple[Case, int]] = {
    "bpf": (rules("-m bpf --object-pinned /sys/fs/bpf/a -j DROP"), 3),
    "clusterip": (
        rules("-j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5e:00:00:01 --total-nodes 2"),
        3,
    ),
    "hashlimit-window": (
        rules(
            "-m hashlimit --hashlimit-above 1/s --hashlimit-name a --hashlimit-rate-match -j DROP",
            "-m hashlimit --hashlimit-above 1/s --hashlimit-name a -j DROP",
        ),
        4,
    ),
    "ipvs": (rules("-m ipvs --ipvs -j DROP"), 3),
    "osf": (rules("-m osf --genre Linux -j DROP"), 3),
    "owner-process": (rules("-m owner --pid-owner 5 -j DROP", hook="OUTPUT"), 3),
    "rateest": (rules("-m rateest --rateest a --rateest-lt --rateest-bps 5 -j DROP"), 3),
    "routing-search": (
        rules("-m rt --rt-type 0 --rt-0-addrs fd00::1 --rt-0-not-strict -j DROP", family=Family.IP6),
        3,
    ),
    "set-map": (rules("-j SET --map-set a src --map-mark", hook="PREROUTING"), 3),
    "supplementary-groups": (rules("-m owner --gid-owner 5 --suppl-groups -j DROP", hook="OUTPUT"), 3),
    "ulog": (rules("-j ULOG --ulog-nlgroup 1"), 3),
    "addrtype6": (rules("-m addrtype --dst-type UNICAST -j DROP", family=Family.IP6), 3),
    "ipset": (rules("-m set --match-set somebody src -j DROP"), 3),
    "program-size": (rules(*["-o eth0 -j MARK --set-mark 1"] * (MOST_STATEMENTS + 1), level=0), 2),
    "recent-hitcount": (rules(RECENT.format("rcheck --hitcount 3")), 3),
    "recent-mask": (
        rules(RECENT.format("set"), "-m recent --name a --set --mask 255.255.255.0 --rsource -j DROP"),
        3,
    ),
    "recent-reap": (rules(RECENT.format("rcheck --seconds 5 --reap"), f"-m {LONG}"), 3),
    "recent-rttl": (rules(RECENT.format("rcheck --rttl")), 3),
    "unknown": (listing, 3),
    "unmodelled": (rules("-m string --algo bm --string attack -j DROP"), 3),
    "ct-template": (does(Template(zone=1)), 3),
    "tproxy": (does(Proxy(address=None, port=1)), 3),
    "socket-owner": (rules("-m owner --uid-owner 5 -j DROP", hook="OUTPUT"), 3),
    "socket-taker": (rules("-m cgroup --cgroup 5 -j DROP", hook="INPUT"), 3),
    "socket-lookup": (rules("-m socket -j DROP", hook="INPUT"), 3),
    "bridge-port": (rules("-m physdev --physdev-in eth1 -j DROP"), 3),
    "helper": (rules("-m helper --helper ftp -j DROP"), 3),
    "connbytes": (
        rules("-m connbytes --connbytes 9 --connbytes-mode bytes --connbytes-dir both -j DROP"),
        3,
    ),
    "connlimit": (rules("-m connlimit --connlimit-above 121 -j DROP"), 3),
    "mh-order": (rules("-p mh -m limit -m mh -j DROP", family=Family.IP6), 3),
    "ct-expire": (rules("-m conntrack --ctexpire 5 -j DROP"), 3),
    "realm": (rules("-m realm --realm 5 -j DROP"), 3),
    "sctp-chunks": (rules("-p sctp -m sctp --chunk-types any INIT -j DROP"), 3),
    "connlabel": (rules("-m connlabel --label 5 -j DROP"), 3),
    "tee": (rules("-j TEE --gateway 10.0.0.9"), 3),
    "synproxy": (rules("-p tcp -j SYNPROXY"), 3),
    "external": (rules("-j IDLETIMER --timeout 5 --label a"), 3),
    "secmark": (rules("-j CONNSECMARK --save", hook="PREROUTING"), 3),
    "set-nets": (with_set("-j SET --add-set a src", "create a hash:net family inet"), 3),
    "set-forceadd": (with_set("-j SET --add-set a src", "create a hash:ip family inet forceadd"), 3),
    "queue": (does(Queue(first=1, last=1)), 3),
    "ipsec": (rules("-m policy --dir in --pol ipsec -j DROP"), 3),
    "empty-nat": (does(Dnat(addresses=None, ports=NatPorts())), 3),
    "reject-kind": (does(Reject(RejectKind.ICMP6_NO_ROUTE)), 3),
    "interface-mask": (
        lowered(
            Apply(
                origin=HERE,
                tests=(FieldTest(field=Field.IIF, values=(Name("eth0"),), mask=1),),
                actions=(Accept(),),
            )
        ),
        3,
    ),
    "entry-size": (
        lowered(
            Lookup(
                origin=HERE,
                fields=(Field.MARK,),
                entries=(
                    Entry(
                        key=(Interval.point(1),),
                        actions=(SetMark(value=1, mask=1),) * ARGUMENTS,
                        origin=HERE,
                    ),
                ),
            )
        ),
        3,
    ),
}


@pytest.mark.parametrize("feature", CASES)
def test_the_rule_is_refused_by_its_name_and_place(feature: str) -> None:
    made, line = CASES[feature]
    with pytest.raises(UnsupportedError) as caught:
        emit(made())
    found = {(one.feature, one.origin.file, one.origin.line) for one in caught.value.refusals}
    assert (feature, "rules", line) in found
    assert {name for name, _, _ in found} == {feature}


def test_each_feature_has_a_case() -> None:
    assert set(CASES) == set(REFUSED)


def test_nothing_else_is_refused() -> None:
    with pytest.raises(KeyError, match="something-new"):
        CannotExpress("something-new", "which nobody has explained")
    assert {name for name, _ in raised()} <= set(REFUSED)
    modules = {
        "actions.py",
        "conditions.py",
        "emit.py",
        "fields.py",
        "ipsets.py",
        "lookups.py",
        "statements.py",
    }
    assert {where for _, where in raised()} == modules


def raised() -> Iterator[tuple[str, str]]:
    """The features that the text of the package names, and where; refusals are made in one place only."""
    for path in Path(translate.bpf.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "Refusal"
                if node.func.id == "CannotExpress" and isinstance(node.args[0], ast.Constant):
                    yield str(node.args[0].value), path.name
