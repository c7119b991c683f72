"""``nfparity`` in a process that is forked from this one, with its modules already imported.

The command takes 20 ms of processor time, where a new interpreter takes 300 ms before it reads its arguments.
Everything else is as with a new interpreter: signals, descriptors, the exit status.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from tempfile import TemporaryFile
from typing import Final, NoReturn

from nfparity.cli.main import COMMANDS, main
from tests.lab.traffic.host import ToolOutput

__all__ = ["run_nfparity"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_SECONDS: Final = 1800
"""The longest time of a command: an emulated guest needs many times as long as this machine."""
_MODULES: Final = (
    *(f"nfparity.cli.{name}" for name in COMMANDS),
    "harness.report.progress",
    "nfparity.livenode",
    "nfparity.migrate.planning.planning",
    "nfparity.migrate.verification",
    "nfparity.report.migration",
    "nfparity.tc.connections",
    "nfparity.tc.status",
    "translate.condense",
)
"""The modules that commands import only when they need them."""

for _name in _MODULES:
    importlib.import_module(_name)


def run_nfparity(words: Sequence[str], text: str = "") -> ToolOutput:
    """Run ``nfparity`` with these arguments and standard input, in the project's root.

    Returns when every process that has its output has ended or closed it. The process must have no other
    threads. A command that takes longer than half an hour is killed.
    """
    with TemporaryFile() as stdin:
        stdin.write(text.encode())
        stdin.seek(0)
        pipes = (os.pipe(), os.pipe())
        child = os.fork()
        if not child:
            _serve(words, (stdin.fileno(), *(writes for _, writes in pipes)))
    for _, writes in pipes:
        os.close(writes)
    out, err = _read([reads for reads, _ in pipes])
    _, status = os.waitpid(child, 0)
    return ToolOutput(os.waitstatus_to_exitcode(status), out, err)


def _read(pipes: Sequence[int]) -> list[str]:
    outputs = {pipe: bytearray() for pipe in pipes}
    with DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 1 << 16)
                outputs[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [data.decode() for data in outputs.values()]


def _serve(words: Sequence[str], streams: tuple[int, ...]) -> NoReturn:
    status = 70
    try:
        signal.alarm(_SECONDS)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = (open(n, mode) for n, mode in enumerate(("r", "w", "w")))  # noqa: SIM115
        os.chdir(_ROOT)
        try:
            status = main(words)
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
