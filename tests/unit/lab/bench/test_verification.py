"""The table of what verifying commands cost."""

from __future__ import annotations

import sys
from dataclasses import replace

from tests.lab.bench import verification
from tests.lab.bench.verification import COMMANDS, CommandCost, command_table, mixed

GENERATE = CommandCost(name="corpus generate", services=1000, seconds=12.3, memory=168.0, status=1)


def row(cost: CommandCost) -> str:
    return list(command_table([cost]))[-2]


def test_a_row_has_both_targets() -> None:
    assert row(GENERATE) == "| corpus generate | 1000 | 12.3 s | 20 s | 168 MiB | 400 MiB | reached |"


def test_time_or_memory_over_the_target_misses_it() -> None:
    assert row(replace(GENERATE, seconds=21.0)).endswith("| missed |")
    assert row(replace(GENERATE, memory=401.0)).endswith("| missed |")


def test_a_command_that_fails_reaches_nothing() -> None:
    assert row(replace(GENERATE, status=3)).endswith("| failed with exit status 3 |")


def test_the_memory_is_that_of_the_command_alone() -> None:
    """Not that of this process, from which the command's process is forked."""
    here = bytearray(200 << 20)
    cost = verification._cost(COMMANDS[0], (sys.executable, "-S", "-c", "print(); raise SystemExit(7)"))
    assert len(here) >> 20 == 200
    assert (cost.status, cost.name) == (7, COMMANDS[0].name)
    assert 1 < cost.memory < 100


def test_no_costs_make_no_table() -> None:
    assert list(command_table([])) == []


def test_the_clusters_have_services_of_every_kind() -> None:
    shape = mixed(1000)
    kinds = (
        shape.node_ports,
        shape.load_balancers,
        shape.source_ranges,
        shape.affinity,
        shape.external_local,
    )
    assert all(kinds)
    assert len({(command.name, command.services) for command in COMMANDS}) == len(COMMANDS)
