"""Measure loading, changing and carrying packets side by side, and write tests/lab/bench/RESULTS.md."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from tests.lab.bench.figures import Figures
from tests.lab.bench.machine import load_average, machine
from tests.lab.bench.report import write_report
from tests.lab.bench.run import Limits, Run
from tests.lab.bench.subjects import WIDE, material, subjects
from tests.lab.bench.throughput import speeds
from tests.lab.bench.verification import command_costs
from translate.errors import InputError, MachineError, NfparityError

_EXAMPLE = """\
examples:
  python -m tests.lab.bench --sizes 10 100 --load-rounds 1
  python -m tests.lab.bench --only iptables-legacy "nfparity -O1" --output build/bench
"""

_HERE = Path("tests/lab/bench")


def main(arguments: list[str] | None = None) -> int:
    """Run the bench. Return 0, 2 for invalid options, or 3 if it cannot run on this machine."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except InputError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 2
    except NfparityError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 3
    return 0


def _run(options: argparse.Namespace) -> None:
    if os.geteuid():
        raise MachineError("needs root, for network namespaces")
    every = subjects()
    unknown = [name for name in options.only or () if name not in every]
    if unknown:
        raise InputError(f"no subject {unknown[0]!r}; there are {', '.join(every)}")
    chosen = [subject for name, subject in every.items() if not options.only or name in options.only]
    limits = Limits(
        load_rounds=options.load_rounds,
        rounds=options.rounds,
        packets=options.packets,
        load_seconds=options.load_seconds,
        sample_seconds=options.sample_seconds,
    )
    figures = Figures(
        machine=machine(),
        options={
            "cluster": f"{options.endpoints} endpoints per service",
            "rounds": f"{limits.load_rounds} of loads, {limits.rounds} of changes and packets",
            "packets": f"at most {limits.packets:,}, or {limits.sample_seconds:g} s, a sample",
            "load average at the beginning": load_average(),
        },
    )
    run = Run(chosen, limits, say=_say, cells=figures.cells)
    for size in sorted(options.sizes):
        made = material(size, options.endpoints)
        run.size(made, size)
        if options.speeds:
            _say(f"{size} services: reader, simulator, replay")
            for name, value in speeds(made, limits.sample_seconds).items():
                figures.speeds.setdefault(name, {}).setdefault(size, []).append(value)
        figures.options["load average at the end"] = load_average()
        write_report(figures, options.output)
    wide = [subject for subject in chosen if subject.name in WIDE]
    if wide and options.wide:
        loads = Run(wide, replace(limits, rounds=0), say=_say, cells=figures.wide)
        loads.size(material(max(options.sizes), options.wide), max(options.sizes))
        figures.options["cluster"] += f"; {options.wide} for the wide one"
        write_report(figures, options.output)
    if options.verification:
        for cost in command_costs(options.verification, _say):
            figures.commands.append(cost)
            write_report(figures, options.output)
    _say(f"written to {options.output}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.bench",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Limits()
    parser.add_argument(
        "--sizes",
        type=_positive,
        nargs="+",
        default=[10, 100, 1000, 10_000],
        metavar="N",
        help="numbers of services; default: 10 100 1000 10000",
    )
    parser.add_argument(
        "--endpoints",
        type=_several,
        default=3,
        metavar="N",
        help="endpoints of each service, at least 2, because a change removes one; default: 3",
    )
    parser.add_argument(
        "--wide",
        type=int,
        default=5,
        metavar="N",
        help="endpoints per service of an additional load of the largest size; 0 for none; default: 5",
    )
    parser.add_argument(
        "--load-rounds",
        type=_positive,
        default=default.load_rounds,
        metavar="N",
        help="rounds of loads; default: 3",
    )
    parser.add_argument(
        "--rounds",
        type=_positive,
        default=default.rounds,
        metavar="N",
        help="rounds of changes and packets; default: 5",
    )
    parser.add_argument(
        "--packets", type=_positive, default=default.packets, metavar="N", help="maximum per sample"
    )
    parser.add_argument("--only", nargs="+", metavar="SUBJECT", help="measure only these")
    parser.add_argument(
        "--load-seconds",
        type=float,
        default=default.load_seconds,
        metavar="S",
        help="time limit of a load; default: 120",
    )
    parser.add_argument(
        "--sample-seconds",
        type=float,
        default=default.sample_seconds,
        metavar="S",
        help="time for the packets of one sample; default: 0.5",
    )
    parser.add_argument(
        "--no-speeds",
        dest="speeds",
        action="store_false",
        help="do not measure the reader, the simulator and the replay",
    )
    parser.add_argument(
        "--verification",
        type=int,
        default=10_000,
        metavar="N",
        help="services of the largest cluster for which verifying commands are measured; 0 for none;"
        " default: 10000",
    )
    parser.add_argument("--output", type=Path, default=_HERE, metavar="DIR", help=f"default: {_HERE}")
    return parser


def _positive(text: str) -> int:
    return _at_least(1, text)


def _several(text: str) -> int:
    return _at_least(2, text)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"must be at least {least}")
    return number


if __name__ == "__main__":
    sys.exit(main())
