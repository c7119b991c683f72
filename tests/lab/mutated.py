"""Random changes of inputs of every kind: each must give a result or one of nfparity's own errors.

The readers run in this process, each with the quick steps that follow it. As a command, with a number of
inputs and a seed, it prints each input that has another result, or that takes too long to read.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType

from harness.files.errors import CaptureError
from tests.lab.inputreaders import LONGEST, TARGETS
from translate.errors import NfparityError

__all__ = ["Fault", "Tried", "inputs", "tried"]

_SECONDS = 60
"""The seconds after which reading an input counts as endless, however busy the machine is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An input that gave neither a result nor one of nfparity's own errors."""

    target: str
    data: bytes
    error: BaseException


_WORDS = (
    *(b"0", b"-1", b"65536", b"99999999999999999999", b"1" * 5000, b"1e999", b"NaN", b"0x", b"1.5"),
    *(b"null", b"true", b"[]", b"{}", b'""', b"[" * 3000, b'{"a":' * 3000, b'"\\ud800"', b"\\u0000"),
    *(
        b"!",
        b'"',
        b"'",
        b"\\",
        b"$x",
        b"-A",
        b"-j",
        b"-m",
        b"--",
        b"COMMIT\n",
        b"*nat\n",
        b":",
        b",",
        b"/",
        b"-",
    ),
    *(b"\x00", b"\x1b[31m", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\xe2\x80\xa8", b"\xd9\xa3", b"\xc2\xb2"),
    *(b"255.255.255.255", b"0.0.0.0/0", b"1.2.3.4/33", b"::", b"::ffff:1.2.3.4", b"fe80::1%eth0", b"eth0+"),
)
"""Words at a limit of some reader."""


def _changed(data: bytes, seeds: tuple[bytes, ...], draw: random.Random) -> bytes:
    """Change an input in one place."""
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + int(draw.paretovariate(0.7)))
    tokens = data.split(b" ")
    lines = data.split(b"\n")
    match draw.randrange(10):
        case 0:
            return data[:at] + bytes((draw.randrange(256),)) + data[at + 1 :]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:at] + draw.choice(_WORDS) + data[at:]
        case 3:
            return data[:at] + data[at:end] * draw.choice((2, 3, 50)) + data[end:]
        case 4:
            tokens[draw.randrange(len(tokens))] = draw.choice(_WORDS)
            return b" ".join(tokens)
        case 5:
            first, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
            tokens[first], tokens[other] = tokens[other], tokens[first]
            return b" ".join(tokens)
        case 6:
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
            return b"\n".join(lines)
        case 7:
            del lines[draw.randrange(len(lines))]
            return b"\n".join(lines)
        case 8:
            other_lines = draw.choice(seeds).split(b"\n")
            lines[draw.randrange(len(lines))] = draw.choice(other_lines)
            return b"\n".join(lines)
        case _:
            return _with_another_value(data, draw)


def _overwritten(data: bytes, draw: random.Random) -> bytes:
    """Change some bytes of an input (mostly nonzero ones), or copy a block of it."""
    at = draw.choice([place for place, byte in enumerate(data) if byte])
    match draw.randrange(4):
        case 0:
            return data[:at] + bytes((draw.randrange(256),)) + data[at + 1 :]
        case 1:
            word = draw.choice(_WORDS)[:100]
            return data[:at] + word + data[at + len(word) :]
        case 2:
            return data[:at] + bytes((data[at] ^ 1 << draw.randrange(8),)) + data[at + 1 :]
        case _:
            first, other = (draw.randrange(len(data) // 512) * 512 for _ in range(2))
            return data[:first] + data[other : other + 512] + data[first + 512 :]


def _with_another_value(data: bytes, draw: random.Random) -> bytes:
    """Put a value of another kind at one place of a JSON input."""
    try:
        made = json.loads(data)
    except (ValueError, RecursionError):
        return data[: draw.randrange(len(data) + 1)]
    places: list[tuple[list[object] | dict[str, object], int | str]] = []
    pending = [made]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            places += ((value, key) for key in value)
            pending += value.values()
        elif isinstance(value, list):
            places += ((value, index) for index in range(len(value)))
            pending += value
    if places:
        holder, key = draw.choice(places)
        holder[key] = draw.choice((None, True, -1, 1.5, 2**70, "", "x", "\ud800", [], {}, [[]], {"a": 1}))  # type: ignore[index]
    return json.dumps(made).encode("utf-8", "surrogatepass")


def inputs(target: str, seed: int) -> Iterator[bytes]:
    """Yield changed inputs of one kind, endlessly."""
    draw = random.Random(f"{target} {seed}")
    seeds, in_blocks = TARGETS[target].seeds, TARGETS[target].in_blocks
    while True:
        data = draw.choice(seeds)
        if len(data) > LONGEST and draw.random() < 0.98:
            lines = data.split(b"\n")
            first = draw.randrange(len(lines))
            data = b"\n".join(lines[first : first + 60]) if len(lines) > 60 else data[:LONGEST]
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            data = _overwritten(data, draw) if in_blocks else _changed(data, seeds, draw)
        yield data


class _Endless(BaseException):
    """Reading an input took too long."""


@contextmanager
def _ended(seconds: float) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise _Endless

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(slots=True)
class Tried:
    """The numbers of inputs of one kind that were read or refused, and the faults."""

    read: int = 0
    refused: int = 0
    faults: list[Fault] = field(default_factory=list)


def tried(target: str, seed: int, number: int) -> Tried:
    """Read a number of inputs of one kind."""
    counts = Tried()
    for data in islice(inputs(target, seed), number):
        try:
            with _ended(_SECONDS):
                TARGETS[target].read(data)
            counts.read += 1
        except (NfparityError, CaptureError):
            counts.refused += 1
        except (Exception, _Endless) as error:
            counts.faults.append(Fault(target, data, error))
    return counts


def main(words: list[str]) -> int:
    """Run with the total number of inputs, the seed, and optionally the kinds of inputs."""
    number, seed, *kinds = words
    kinds = kinds or list(TARGETS)
    faults = 0
    for kind in kinds:
        tally = tried(kind, int(seed), int(number) // len(kinds))
        faults += len(tally.faults)
        print(f"{kind}: {tally.read} read, {tally.refused} refused, {len(tally.faults)} faults", flush=True)
        for fault in tally.faults[:10]:
            print(f"  {fault.error!r}\n  {fault.data[:2000]!r}", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
