"""Reports of a run in several formats: ``--format`` on standard output, ``--report`` in files."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Final, TextIO

from harness.files.output import printable
from harness.files.userfiles import write_text
from translate.errors import InputError

__all__ = ["add_reports", "check_reports", "write_reports"]

_FORMATS: Final = {".txt": "text", ".json": "json", ".sarif": "sarif", ".xml": "junit", ".html": "html"}
"""The format of a file, by the end of its name."""


def add_reports(parser: argparse.ArgumentParser) -> None:
    """Add ``--report``, which may be given several times."""
    endings = ", ".join(f"{end} ({name})" if end[1:] != name else end for end, name in _FORMATS.items())
    parser.add_argument(
        "--report",
        dest="reports",
        metavar="FILE",
        type=_report,
        action="append",
        default=[],
        help="also write the report to this file, in the format that its name ends with: "
        f"{endings}; may be repeated",
    )


def _report(path: str) -> tuple[str, str]:
    for end, name in _FORMATS.items():
        if path.endswith(end):
            return path, name
    raise argparse.ArgumentTypeError(f"{path!r} does not end with one of {', '.join(_FORMATS)}")


def check_reports(reports: Iterable[tuple[str, str]]) -> None:
    """Raise InputError if a folder of these files does not exist: a long run must not end with this error."""
    for path, _ in reports:
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise InputError(f"{path}: cannot be written: its folder does not exist")


def write_reports(
    arguments: argparse.Namespace, print_text: Callable[[TextIO], None], render: Callable[[str], str]
) -> None:
    """Write the report to standard output and to the files.

    ``print_text`` prints the text format, with colours on a terminal; ``render`` returns any other format.
    Raises InputError or MachineError for a file that cannot be written.
    """
    if arguments.format == "text":
        print_text(sys.stdout)
    else:
        sys.stdout.write(render(arguments.format))
    for path, name in arguments.reports:
        if name == "text":
            stream = io.StringIO()
            print_text(stream)
            text = stream.getvalue()
        else:
            text = render(name)
        write_text(path, printable(text, "utf-8"))
