"""Random small rulesets: every backend does with packets what the simulator says."""

from __future__ import annotations

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend
from backends.nftables.backend import NftablesBackend
from backends.tc_ebpf import TcEbpfBackend
from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.lab.random.nodes import with_random_rules
from tests.lab.random.played import Played, expected_flows, node_of, random_job
from tests.lab.random.rules import random_rules
from tests.lab.random.stateful import stateful_rules, stateful_text
from tests.lab.random.visits import played_visits
from translate.errors import InputError
from translate.ir import Family
from translate.read import read_ruleset

SEEDS = (60, *range(343, 350))  # 60: addresses of a range in a zone
COMPILED = 2  # a tc program takes the compiler a second or two
MOST_REFUSED = len(SEEDS) // 2


@pytest.fixture(scope="module", params=Family)
def played(request: pytest.FixtureRequest) -> Played:
    family = request.param
    node, made = node_of(family), Played()
    for seed in SEEDS:
        # Every other node has routing rules of its own.
        job = random_job(seed, family, node if seed % 2 else with_random_rules(node, family, seed))
        made.jobs.append((seed, job, list(expected_flows(job, seed))))
    return made


def _able(backend: Backend) -> Backend:
    require(backend)
    return backend


@pytest.mark.parametrize("backend_name", ["iptables-legacy", "iptables-nft"])
def test_iptables_goes_as_simulated(played: Played, backend_name: str) -> None:
    assert played.differences(_able(IptablesBackend(backend_name)), 0) == ([], 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_nftables_goes_as_simulated(played: Played, level: int) -> None:
    found, refused = played.differences(_able(NftablesBackend()), level)
    assert found == []
    assert refused < MOST_REFUSED


def test_tc_ebpf_goes_as_simulated(played: Played) -> None:
    found, refused = played.differences(_able(TcEbpfBackend()), 1, COMPILED)
    assert found == []
    assert refused < COMPILED


STATEFUL_SEEDS = (
    7,
    16,
    33,
)  # 7, 33: a table of hashlimit for two tables; 16: a draw of all numbers behind a list
WAYS = (("iptables-legacy", 0), ("iptables-nft", 0), ("nftables", 0), ("nftables", 2), ("tc-ebpf", 2))


@pytest.fixture(scope="module", params=Family)
def visited(request: pytest.FixtureRequest) -> list[dict[str, Played]]:
    return [played_visits(seed, request.param, count=4) for seed in STATEFUL_SEEDS]


@pytest.mark.parametrize(("name", "level"), WAYS)
def test_rules_with_several_states_go_as_simulated(
    visited: list[dict[str, Played]], name: str, level: int
) -> None:
    tested = _able(backend(name))
    for played in visited:
        if name in played:
            assert played[name].differences(tested, level) == ([], 0)


@pytest.mark.parametrize("family", Family)
def test_the_same_seed_gives_the_same_rules(family: Family) -> None:
    assert random_rules(7, family) == random_rules(7, family)
    assert random_rules(7, family) != random_rules(8, family)


@pytest.mark.parametrize("family", Family)
def test_every_ruleset_can_be_read(family: Family) -> None:
    for seed in range(100):
        try:
            read_ruleset(random_rules(seed, family).encode(), name=f"random-{seed}", family=family)
        except InputError as e:
            pytest.fail(f"seed {seed}: {e}")


@pytest.mark.parametrize("family", Family)
def test_every_ruleset_with_states_can_be_read(family: Family) -> None:
    assert stateful_text(7, family) == stateful_text(7, family) != stateful_text(8, family)
    for seed in range(100):
        assert stateful_rules(seed, family).sets
