"""The Python bindings of libnftables, loaded from the distribution's directory.

They come with nftables itself (Debian package ``python3-nftables``) for the distribution's own Python; they
are not on PyPI. They are plain Python over ctypes, so any other Python can load them by path. Only this
module does so.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from translate.errors import MachineError

if TYPE_CHECKING:
    from nftables import Nftables

__all__ = ["NftHandle", "find_bindings"]

_PLACES: Final = ("/usr/lib/python3/dist-packages", "/usr/lib/python3*/site-packages")
_MISSING: Final = "the Python bindings of nftables are not installed (Debian package python3-nftables)"


def find_bindings() -> ModuleType:
    """Return the module ``nftables``. Raises MachineError if it or its library is missing."""
    try:
        return importlib.import_module("nftables")
    except ImportError:
        pass
    for place in _PLACES:
        for path in sorted(Path("/").glob(f"{place[1:]}/nftables/__init__.py")):
            return _load(path)
    raise MachineError(_MISSING)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "nftables", path, submodule_search_locations=[str(path.parent)]
    )
    if spec is None or spec.loader is None:
        raise MachineError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the package imports its own submodule by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


class NftHandle:
    """A libnftables context, for the network namespace in which it was created.

    The context caches the kernel's tables between commands, so one context should be kept while rules are
    changed.
    """

    def __init__(self) -> None:
        try:
            self._context: Nftables | None = find_bindings().Nftables()
        except OSError as e:
            raise MachineError(f"libnftables does not load: {e}") from e

    def run(self, text: str) -> str:
        """Run nft commands as one transaction and return their output.

        If it raises MachineError, with libnftables' message, nothing has changed.
        """
        error, output = self.attempt(text)
        if error is not None:
            raise MachineError(f"nftables does not take the rules: {_shortened(error)}")
        return output

    def attempt(self, text: str, *, json: bool = False) -> tuple[str | None, str]:
        """Run nft commands, or ``json``, as one transaction; return error messages or None, and the output.

        If there are messages, nothing has changed. The output has the form of the commands.
        """
        if self._context is None:
            raise ValueError("the handle is closed")
        self._context.set_json_output(json)
        status, output, error = self._context.cmd(text)
        return (error.strip() or "no reason given" if status else None), output

    def attempt_lines(self, text: str) -> str | None:
        """Run nft commands as one transaction; return error messages with their lines.

        They begin with ``file:line:columns: ``, which libnftables prints only for commands from a file.
        """
        file = os.memfd_create("ruleset")
        try:
            with open(file, "w", encoding="utf-8", closefd=False) as stream:
                stream.write(text)
            return self.attempt(f'include "/proc/self/fd/{file}"\n')[0]
        finally:
            os.close(file)

    def close(self) -> None:
        """Free the context."""
        self._context = None


_MOST_LINES: Final = 30


def _shortened(text: str) -> str:
    """Return the first lines of a message: libnftables prints three for each error, perhaps one per rule."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} lines more"]
    return "\n".join(lines)
