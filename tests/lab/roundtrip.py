"""Random rules over all extensions: read, written and read again, and loaded by iptables-legacy-restore.

``python -m tests.lab.roundtrip 100000 1`` draws as many texts of one rule for each family, from this seed on
(:mod:`tests.lab.random.texts`). A rule that is read must not change when it is written and read again, and
must then be written as the same text. In a private network namespace, the written text must load if the
original text loads. (Some texts name objects that do not exist there.) A text that is not read must be
refused with a line and a message.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from backends.testbed.command import own_xtables_lock
from backends.testbed.netlink import Accounting
from tests.lab.random.texts import random_text
from translate.errors import ParseError
from translate.ir import Counters, Family, Ruleset, TableName
from translate.read import read_ruleset
from translate.write import write_save

__all__ = ["Result", "rejected", "reread", "tried"]

_COMMANDS: Final = {Family.IP: "iptables-legacy-restore", Family.IP6: "ip6tables-legacy-restore"}
_SETS: Final = (("nets", "hash:net"), ("pairs", "hash:ip,port"))
_ACCOUNTS: Final = ("one", "DEFAULT", "a.b-c_1", "a" * 31)
"""The ipsets and the accounting objects that random texts name (:mod:`tests.lab.random.values`)."""
_TOGETHER: Final = 200
"""The number of texts that one run of iptables-restore loads; each replaces the previous text of its
table."""
_EMPTY: Final = "".join(f"*{table}\nCOMMIT\n" for table in TableName)
_NONE: Final = Counters(0, 0)
"""The counters of a rule that was read without any."""
_LINE: Final = re.compile(r"line:? (\d+)")


@dataclass(slots=True)
class Result:
    """The counts of texts by their result, and the faults."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def reread(text: str, family: Family) -> str | None:
    """Return the text as written after reading it; None if it is refused with a message.

    Raises AssertionError if it is not the same after it was written, or if a refusal has no place.
    """
    try:
        ruleset = read_ruleset(_bytes(text), name="text", family=family)
    except ParseError as e:
        first = e.diagnostics[0]
        assert first.message, "a refusal without a message"
        assert first.origin.line, "a refusal without a line"
        return None
    written = write_save(ruleset, counters=True)
    again = read_ruleset(_bytes(written), name="written", family=family)
    assert _meaning(again) == _meaning(ruleset), "read otherwise after it was written"
    assert write_save(again, counters=True) == written, "written otherwise"
    return written


def _meaning(ruleset: Ruleset) -> list[tuple[object, ...]]:
    return [
        (
            table.name,
            chain.name,
            rule.tests,
            rule.actions,
            rule.comment,
            rule.counters or _NONE,
            len(rule.unknown),
        )
        for table in ruleset.tables
        for chain in table.chains
        for rule in chain.rules
    ]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def tried(seeds: Sequence[int], family: Family) -> Result:
    """Read and write the texts of these seeds, and load what was written."""
    result = Result()
    command = ["unshare", "--net", "--kill-child", sys.executable, "-m", "tests.lab.roundtrip", "--load"]
    with subprocess.Popen(
        [*command, family.value], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        for start in range(0, len(seeds), _TOGETHER):
            pairs = []
            for seed in seeds[start : start + _TOGETHER]:
                text = random_text(seed, family)
                try:
                    written = reread(text, family)
                except (AssertionError, ParseError) as e:
                    result.faults.append(f"{family} seed {seed}: {e}: {text.splitlines()[-2]}")
                    continue
                result.counts["refused" if written is None else "read"] += 1
                if written is not None:
                    pairs.append((seed, text, written))
            _loaded(child, pairs, family, result)
    return result


def _loaded(
    child: subprocess.Popen[str], pairs: list[tuple[int, str, str]], family: Family, result: Result
) -> None:
    """Load what was written; where that fails, load the text itself."""
    refused = _refusals(child, [written for _, _, written in pairs])
    result.counts["loaded"] += len(pairs) - len(refused)
    at = dict(refused)
    both = _refusals(child, [pairs[index][1] for index in at])
    names = list(at)
    unloadable = {names[index] for index, _ in both}
    result.counts["neither loads"] += len(unloadable)
    for index, message in at.items():
        if index not in unloadable:
            seed, text, written = pairs[index]
            rules = f"{text.splitlines()[-2]} → {written.splitlines()[-2]}"
            result.faults.append(f"{family} seed {seed}: written, and not loaded: {rules}: {message}")


def _refusals(child: subprocess.Popen[str], texts: list[str]) -> list[tuple[int, str]]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(texts) + "\n")
    child.stdin.flush()
    return [(index, message) for index, message in json.loads(child.stdout.readline())]


def rejected(texts: Sequence[str], command: str, environment: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the index and the message for each text that iptables-restore does not load.

    In one run, iptables-restore loads the texts up to the first that it refuses, and prints its line. This
    text is then loaded by itself, because a name of IDLETIMER or RATEEST may still belong to the rules that
    the text replaces.
    """
    start = 0
    while start < len(texts):
        rest = texts[start:]
        done = _run("".join(rest), command, environment)
        if not done.returncode:
            return
        messages = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        numbers = [int(match[1]) for line in messages if (match := _LINE.search(line))]
        failed = _text_at(rest, numbers[-1] if numbers else 1)
        if _run(_EMPTY + rest[failed], command, environment).returncode:
            yield start + failed, messages[-1]
        start += failed + 1


def _run(text: str, command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    words = [command, "-c"]
    return subprocess.run(words, input=_bytes(text), capture_output=True, check=False, env=environment)


def _text_at(texts: Sequence[str], line: int) -> int:
    """Return the index of the text with this line of all of them together, from 1."""
    behind = 0
    for index, text in enumerate(texts):
        behind += text.count("\n")
        if line <= behind:
            return index
    return len(texts) - 1


def _serve(family: Family) -> int:
    """Load the lists of texts from standard input in this network namespace; print the refusals."""
    kind = "inet" if family is Family.IP else "inet6"
    for name, keys in _SETS:
        subprocess.run(["ipset", "create", name, keys, "family", kind], check=True)
    with Accounting() as objects, own_xtables_lock() as lock:
        for name in _ACCOUNTS:
            objects.add(name)
        for line in sys.stdin:
            refused = rejected(json.loads(line), _COMMANDS[family], {**os.environ, **lock})
            print(json.dumps(list(refused)), flush=True)
    return 0


def main() -> int:
    """Print the counts and the faults; return 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.roundtrip", description=__doc__)
    parser.add_argument("number", type=int, nargs="?", help="of texts, for each family")
    parser.add_argument("seed", type=int, nargs="?", default=1, help="the first seed")
    parser.add_argument("--load", type=Family, choices=list(Family), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        return _serve(options.load)
    faults = 0
    for family in Family:
        result = tried(range(options.seed, options.seed + (options.number or 1000)), family)
        counts = ", ".join(f"{word} {count}" for word, count in sorted(result.counts.items()))
        print(f"{family}: {counts}; faults {len(result.faults)}", flush=True)
        for fault in result.faults:
            print(f"  {fault}", flush=True)
        faults += len(result.faults)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
