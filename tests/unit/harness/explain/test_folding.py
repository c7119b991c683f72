"""Chains in groups of one class."""

from __future__ import annotations

from harness.explain.folding import Folded, folded
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.ir import Ruleset
from translate.read import read_ruleset


def rules(*declared: str, rules: tuple[str, ...] = ()) -> Ruleset:
    """A table nat with these user chains."""
    chains = "".join(f":{name} - [0:0]\n" for name in declared)
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{chains}"
    return read_ruleset((text + "".join(f"-A {rule}\n" for rule in rules) + "COMMIT\n").encode(), name="t")


def groups(table: Folded) -> dict[str, list[int]]:
    """The numbers of chains of the groups, by name."""
    numbers: dict[str, list[int]] = {}
    for group in table.groups:
        numbers.setdefault(group.name, []).append(len(group.chains))
    return numbers


def test_each_of_few_chains_is_alone_and_built_in_chains_that_do_nothing_are_together() -> None:
    (table,) = folded(rules("A-1", "A-2", rules=("PREROUTING -j A-1", "A-1 -g A-2")))
    assert groups(table) == {"PREROUTING": [1], "INPUT, OUTPUT": [2], "A-1": [1], "A-2": [1]}
    assert [(link.rules, link.line, link.goto) for link in table.links] == [(1, 7, False), (1, 8, True)]


def test_services_of_one_class_are_together_whatever_their_numbers_of_endpoints() -> None:
    one = draw_cluster(Shape(services=30, endpoints=1))
    many = draw_cluster(Shape(services=40, endpoints=3, affinity=12, seed=2))
    for cluster, services in ((one, [31]), (many, [12, 31])):
        ruleset = read_ruleset(kube_proxy_rules(cluster).encode(), name="t")
        nat = next(table for table in folded(ruleset) if table.table == "nat")
        assert sum(groups(nat)["KUBE-SVC-*"]) == sum(
            chain.name.startswith("KUBE-SVC-") for t in ruleset.tables for chain in t.chains
        )
        assert len(groups(nat)["KUBE-SVC-*"]) <= len(services) + 1
        assert groups(nat)["KUBE-SERVICES"] == groups(nat)["KUBE-MARK-MASQ"] == [1]
        assert nat.chains == len(next(t for t in ruleset.tables if t.name == "nat").chains)
        links = {(nat.groups[link.caller].name, nat.groups[link.callee].name) for link in nat.links}
        assert ("KUBE-SERVICES", "KUBE-SVC-*") in links
        assert ("KUBE-SVC-*", "KUBE-SEP-*") in links


def test_another_shape_of_rules_is_another_class() -> None:
    names = [f"zone{n}" for n in range(30)]
    made = tuple(f"zone{n} -p {'tcp' if n < 20 else 'udp'} -s 10.0.0.{n} -j RETURN" for n in range(30))
    others = tuple(f"zone{n} -s 10.0.0.{n} -j RETURN" for n in range(29))
    assert groups(folded(rules(*names, rules=made))[0])["zone*"] == [30]
    (table,) = folded(rules(*names, rules=(*made, *others)))
    assert (groups(table)["zone*"], groups(table)["zone29"]) == ([29], [1])


def test_a_table_has_at_most_sixty_groups_of_user_chains() -> None:
    """Names that have nothing in common, at last."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    same = [f"team-{a}{b}" for a in letters for b in letters]
    others = [f"{a}{b}x" for a in letters for b in letters]
    assert groups(folded(rules(*same))[0])["team*"] == [676]
    (table,) = folded(rules(*others, rules=("PREROUTING -j AAx", "AAx -j ABx")))
    assert groups(table)["*"] == [676]
    (group,) = (group for group in table.groups if group.name == "*")
    assert (group.inside, group.fewest, group.most) == (1, 0, 1)


def test_only_the_chains_below_one() -> None:
    ruleset = rules("A", "B", "C", rules=("PREROUTING -j A", "A -j B", "C -j B"))
    (table,) = folded(ruleset, start="A")
    assert groups(table) == {"A": [1], "B": [1]}
    assert len(table.links) == 1
    assert folded(ruleset, start="none") == ()
