"""Compilation of the tc programs of cases in advance, for another kernel than the running one.

An emulated guest needs more than a minute for clang per ruleset, this machine one or two seconds. ``python -m
vm.precompile --cases FOLDER… --levels LEVEL… --processors N`` compiles the programs of ``FOLDER`` into the
cache of compiled programs (``XDG_CACHE_HOME``). The guest finds them there, because the cache identifies a
program by its text, compiler and kernel headers (``NFPARITY_KERNEL_HEADERS``). Needs root, as BCC does. The
guest compiles programs that are not in the cache.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from backends.tc_ebpf.backend import NO_RULES
from backends.tc_ebpf.programs.cache import Cache, cache_folder
from backends.tc_ebpf.programs.program import compiled
from harness.corpus.cases import read_cases
from translate.bpf import emit
from translate.errors import NfparityError, UnsupportedError
from translate.passes import lower

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Compile and return 0, or 3 with a message when a program cannot be compiled here."""
    parser = argparse.ArgumentParser(prog="python -m vm.precompile", description=__doc__)
    parser.add_argument("--cases", nargs="+", required=True, metavar="FOLDER", help="folders of cases")
    parser.add_argument("--levels", nargs="+", type=int, required=True, metavar="LEVEL")
    parser.add_argument(
        "--processors", type=int, required=True, metavar="N", help="number of processors of the other machine"
    )
    options = parser.parse_args(arguments)
    try:
        programs = [NO_RULES]
        rulesets = {c.rules_path.resolve(): c.ruleset for f in options.cases for c in read_cases(Path(f))}
        programs += [lower(ruleset, level=level) for ruleset in rulesets.values() for level in options.levels]
        cache = Cache(cache_folder())
        for program in programs:
            try:
                output = replace(emit(program), processors=options.processors)
            except UnsupportedError:
                continue  # the report of the test contains the refusal
            compiled(output, cache=cache)
    except NfparityError as error:
        print(f"precompile: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
