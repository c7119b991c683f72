"""The entry point: runs a command, and turns errors into messages and exit statuses."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Container, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, Protocol, cast

from harness.files.errors import CaptureError
from harness.files.output import standard_streams
from nfparity.cli.parser import Parser, UsageError
from translate.collector import collector_seldom
from translate.errors import InputError, MachineError

__all__ = ["COMMANDS", "SUMMARY", "VERSION", "main", "make_parser"]

VERSION: Final = "1.0.0"
SUMMARY: Final = "translate a node's iptables rules, and test the translation with packets"

COMMANDS: Final = {
    "translate": "translate iptables rules to nftables or to a tc eBPF program",
    "simulate": "compute the outcomes of packets, as JSON Lines",
    "diff": "send the same packets through every backend and compare the outcomes",
    "explain": "show the path of one packet, rule by rule, with the reasons",
    "graph": "show the chains and the jumps between them",
    "corpus": "generate, check, record, import and export flows; measure coverage",
    "assess": "list the differences of kube-proxy's nftables mode, with example packets",
    "requires": "list the kernel modules that rules and their translation need",
    "tc": "load and manage the tc eBPF program",
    "watch": "list what has changed in this node's rules since a snapshot",
    "capture": "capture a snapshot of this node: rules, interfaces, routes, sysctls",
    "migrate": "migrate this node to nftables, with rollback",
    "doctor": "check this machine, and list the packages to install",
}

_EPILOG: Final = """\
exit status: 0 parity or done, 1 differences, 2 bad input, 3 the machine lacks something or output cannot
be written, 4 no difference, but not everything was tested, 70 a bug of nfparity

`nfparity COMMAND --help` shows the options of a command and an example
"""

_FAULT: Final = 70
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141


class _Command(Protocol):
    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``nfparity`` with these arguments and return the exit status."""
    with standard_streams(), collector_seldom():
        previous = signal.getsignal(signal.SIGTERM)
        try:
            signal.signal(signal.SIGTERM, _terminate)
        except ValueError:
            previous = None  # not in the main thread: the caller handles signals
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            if previous is not None:
                signal.signal(signal.SIGTERM, previous)


def _run(words: list[str]) -> int:
    """Run a command, and turn its exceptions into a message and a status."""
    try:
        try:
            return _dispatch(words)
        finally:
            sys.stdout.flush()  # output that cannot be written is an error, also if the command has succeeded
    except UsageError as e:
        raise SystemExit(_fail(str(e), 2)) from None  # as argparse does
    except InputError as e:
        return _fail(str(e), 2)
    except MachineError as e:
        return _fail(str(e), 3)
    except CaptureError as e:
        return _fail(str(e), e.status)
    except MemoryError:
        return _fail("not enough memory", 3)
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] in ("translate", "backends", "harness", "nfparity"):
            return _fault()
        return _fail(f"the Python package {e.name!r} is missing; nfparity doctor lists what to install", 3)
    except BrokenPipeError:
        return _BROKEN_PIPE  # the reader of our output has closed it
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except Exception:
        return _fault()


def _fault() -> int:
    traceback.print_exc()
    return _fail("this is a bug of nfparity, not a fault of its input; please report it", _FAULT)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    # As an exception, so that every session closes on the way out.
    raise SystemExit(128 + number)


def _fail(message: str, status: int) -> int:
    print(f"nfparity: {message}", file=sys.stderr)
    return status


class _Version(argparse.Action):
    """Prints the version of nfparity, then those of the kernel and of the tools that load rules."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from nfparity.doctor import versions

        print(f"nfparity {VERSION}")
        for name, version in versions():
            print(f"{name:<24}{version}")
        parser.exit()


def make_parser(configured: Container[str]) -> Parser:
    """Return the parser, with the options of the ``configured`` commands: their modules are imported."""
    parser = Parser(prog="nfparity", description=f"{SUMMARY.capitalize()}.", epilog=_EPILOG)
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="print the versions of nfparity and of its tools",
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary)
        if name in configured:
            _module(name).configure(sub)
    return parser


def _dispatch(words: list[str]) -> int:
    if not words:
        return _print_overview()
    arguments = make_parser(words[:1]).parse_args(words)
    run = _module(arguments.command).run
    if not getattr(arguments, "quiet", False):
        return run(arguments)
    # A command prints progress and notes there; an error is an exception, which is printed outside of this.
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, redirect_stderr(nothing):
        return run(arguments)


def _print_overview() -> int:
    from nfparity.overview import overview, read_rules

    rules = read_rules()
    print(f"nfparity {VERSION}: {SUMMARY}\n")
    print("\n".join(overview(rules.files, rules.unread, root=os.geteuid() == 0)))
    return 0


def _module(command: str) -> _Command:
    return cast(_Command, importlib.import_module(f"nfparity.cli.{command}"))
