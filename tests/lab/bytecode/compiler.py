"""nft as a compiler: it prints the messages that it would send to the kernel."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from tests.lab.bytecode.listing import Listing, listing_of
from tests.lab.bytecode.netlink import Message, read_messages
from translate.errors import MachineError

__all__ = ["Nft", "NftError"]


class NftError(Exception):
    """nft refuses the text; the message is nft's."""


@dataclass(frozen=True, slots=True)
class Nft:
    """One nft; ``command`` starts it, perhaps with a dynamic loader and the path of its libraries."""

    name: str
    command: tuple[str, ...] = ("nft",)

    def compiled(self, text: str) -> Listing:
        """Return the rules and sets that nft compiles from a text.

        The text is loaded, in a network namespace that ends with nft. With ``nft -c``, the kernel would not
        check the depth of jumps. Needs root. Raises NftError when nft or the kernel refuses the text,
        MachineError when nft cannot be run.
        """
        return listing_of(self.messages(text))

    def messages(self, text: str) -> tuple[Message, ...]:
        """Return the messages that nft sends to the kernel. Raises the errors of :meth:`compiled`."""
        return tuple(read_messages(self._loaded(text, "--debug=mnl")))

    def load(self, text: str) -> None:
        """Load a text as :meth:`compiled` does. Raises the same errors."""
        self._loaded(text)

    def version(self) -> str:
        """Return the version as nft prints it. Raises MachineError when nft cannot be run."""
        done = self._run("--version")
        if done.returncode != 0:
            raise MachineError(f"{self.name} does not run: {done.stderr.strip()}")
        return done.stdout.strip()

    def _loaded(self, text: str, *options: str) -> str:
        done = self._run(*options, "-f", "-", text=text)
        if done.returncode != 0:
            raise NftError(done.stderr.strip())
        return done.stdout

    def _run(self, *options: str, text: str = "") -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                ("unshare", "--net", *self.command, *options),
                input=text,
                capture_output=True,
                encoding="utf-8",
                errors="surrogateescape",
                env={**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
                check=False,
            )
        except OSError as e:
            raise MachineError(f"{self.name} cannot be run: {e}") from e
