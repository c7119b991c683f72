"""Processor time and memory of the commands that verify, each run as a process of its own.

Most clusters are mixed as real ones are: 5 % of the services have node ports, 3 % load balancers, some have
source ranges, affinity or local policies, and some have no endpoints.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backends.model.node import node_to_json
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules

__all__ = ["COMMANDS", "Command", "CommandCost", "command_costs", "command_table", "mixed"]

_NFPARITY: Final = f"{sys.executable} -m nfparity"
_PRIVATE: Final = ("unshare", "--net", "--mount", "sh", "-ec")
_PINS: Final = "mount -t bpf bpf /sys/fs/bpf"
_DEVICES: Final = "ip link set lo up; ip link add pod0 type veth peer name far0; ip link set pod0 up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command for a cluster of some ``services``, with its targets in seconds and MiB; None: no target.

    ``text`` is for a shell, with ``{nfparity}``, ``{rules}`` and ``{node}``. ``seconds`` is processor time of
    the process and its children. With ``warm``, the command has run once before, to fill caches. ``plain``
    services have a ClusterIP and three endpoints, and nothing else.
    """

    name: str
    services: int
    text: str
    seconds: float
    memory: float | None = None
    warm: bool = False
    plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCost:
    """The measured cost of a command: processor time in seconds, and the largest process in MiB."""

    name: str
    services: int
    seconds: float
    memory: float
    status: int


_MEASURE: Final = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
"""Runs a command and prints its status, processor time and memory.

A new program has the memory of the process that was forked for it in its maximum, so a small one starts it.
"""

_SHORT: Final = 30.0
_REPEATED: Final = 3
"""The number of runs of a command that takes less than :data:`_SHORT` seconds."""

_GENERATE: Final = "{nfparity} corpus generate {rules} --node {node} -o /dev/null"
_WHOLE: Final = "{nfparity} assess {rules} --node {node}"
_KNOWN: Final = "{nfparity} assess {rules} --node {node} --known-only"
_PLAN: Final = (
    "iptables-legacy-restore <{rules};"
    " exec {nfparity} migrate plan --family ip --variant legacy --node {node}"
)

COMMANDS: Final = (
    Command(name="corpus generate", services=100, text=_GENERATE, seconds=1.0, plain=True),
    Command(name="corpus generate", services=1000, text=_GENERATE, seconds=20.0, memory=400.0),
    Command(name="corpus generate", services=10_000, text=_GENERATE, seconds=180.0, memory=1536.0),
    Command(name="assess --known-only", services=1000, text=_KNOWN, seconds=15.0),
    Command(name="assess --known-only", services=10_000, text=_KNOWN, seconds=120.0),
    Command(name="assess", services=1000, text=_WHOLE, seconds=60.0),
    Command(name="migrate plan", services=300, text=_PLAN, seconds=20.0),
    Command(name="migrate plan", services=10_000, text=_PLAN, seconds=240.0),
    Command(
        name="diff of the regression corpus",
        services=0,
        text="{nfparity} diff --corpus tests/corpus/cases",
        seconds=10.0,
        warm=True,
    ),
    Command(
        name="tc load",
        services=10,
        text=f"{_PINS}; {_DEVICES}; exec {{nfparity}} tc load {{rules}}",
        seconds=0.3,
        warm=True,
    ),
)
"""The commands with targets."""


def mixed(services: int) -> Shape:
    """Return the shape of a cluster with services of every kind."""
    return Shape(
        services=services,
        node_ports=services // 20,
        load_balancers=services * 3 // 100,
        source_ranges=services * 15 // 1000,
        external_local=services * 15 // 1000,
        internal_local=services // 100,
        affinity=services // 50,
        without_endpoints=services // 50,
        udp=services // 20,
    )


def command_costs(most: int, say: Callable[[str], None]) -> Iterator[CommandCost]:
    """Run the commands for clusters of at most ``most`` services, and yield the cost of each.

    Every command runs in a network namespace of its own. Of a short command, the run with the least processor
    time counts: the rest of the machine can only make it longer.
    """
    with tempfile.TemporaryDirectory(prefix="nfparity-bench-") as folder:
        for command in COMMANDS:
            if command.services > most:
                continue
            say(f"{command.name}, {command.services:,} services")
            rules, node = _files(Path(folder), command)
            text = command.text.format(nfparity=_NFPARITY, rules=rules, node=node)
            words = (*_PRIVATE, text)
            if command.warm:
                _cost(command, words)
            costs = [_cost(command, words)]
            if costs[0].seconds < _SHORT:
                costs += [_cost(command, words) for _ in range(_REPEATED - 1)]
            yield min(costs, key=lambda cost: cost.seconds)


def _files(folder: Path, command: Command) -> tuple[Path, Path]:
    """Return the files of the rules and the node, which are drawn at their first use."""
    shape = Shape(services=command.services) if command.plain else mixed(command.services)
    name = f"{command.services}{'-plain' if command.plain else ''}"
    rules, node = folder / f"{name}.rules", folder / f"{name}.json"
    if command.services and not rules.exists():
        cluster = draw_cluster(shape)
        rules.write_text(kube_proxy_rules(cluster), encoding="utf-8")
        node.write_text(node_to_json(cluster.node), encoding="utf-8")
    return rules, node


def _cost(command: Command, words: Sequence[str]) -> CommandCost:
    run = [sys.executable, "-S", "-E", "-c", _MEASURE, *words]
    printed = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    status, seconds, kibibytes = printed.stdout.split()
    return CommandCost(
        name=command.name,
        services=command.services,
        seconds=float(seconds),
        memory=int(kibibytes) / 1024,
        status=int(status),
    )


def command_table(costs: Sequence[CommandCost]) -> Iterator[str]:
    """Yield the lines of the table of costs and targets; none without costs."""
    if not costs:
        return
    yield "## Cost of verification"
    yield ""
    yield (
        "Processor time of a command and its children, and the memory of its largest process. Clusters have"
        " services of every kind, except where they are plain. A warm command has run once before. Of a"
        f" command below {_SHORT:g} s, the shortest of {_REPEATED} runs counts."
    )
    yield ""
    yield "| | services | processor time | at most | memory | at most | |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    targets = {(command.name, command.services): command for command in COMMANDS}
    for cost in costs:
        target = targets[cost.name, cost.services]
        room = "-" if target.memory is None else f"{target.memory:,.0f} MiB"
        words = ", warm" * target.warm + ", plain" * target.plain
        yield (
            f"| {cost.name}{words} | {cost.services or '-'} | {cost.seconds:.3g} s | {target.seconds:g} s"
            f" | {cost.memory:,.0f} MiB | {room} | {_verdict(cost, target)} |"
        )
    yield ""


def _verdict(cost: CommandCost, target: Command) -> str:
    accepted = (0, 1, 4) if target.text in (_GENERATE, _KNOWN, _WHOLE) else (0,)
    if cost.status not in accepted:  # 1: differences, or rules that no flow hits; 4: not everything tested
        return f"failed with exit status {cost.status}"
    enough = target.memory is None or cost.memory <= target.memory
    return "reached" if enough and cost.seconds <= target.seconds else "missed"
