"""Given nftables rulesets that would open files or keep libnftables busy: they are refused or interrupted."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backends.given_nftables import backend as nftgiven
from backends.given_nftables.backend import GivenNftLoader
from backends.model.node import node_from_json
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay import limits
from backends.replay.session import open_session
from backends.testbed.libnftables import NftHandle
from backends.testbed.tapnode import TapNode
from tests.kernel.helpers.availability import require
from translate.errors import InputError, ParseError
from translate.ir import Family
from translate.nftlisting import Script, read_listing

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/corpus"
KUBE = CORPUS / "rulesets/kube-real"
LISTINGS = (*sorted((CORPUS / "listings").glob("*.nft")), KUBE / "realistic.nft")


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


class Checks(NftablesLoader):
    """Has libnftables read each of several scripts, and keeps what it says."""

    def __init__(self, texts: list[str], folder: Path) -> None:
        super().__init__("")
        self._texts = texts
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        handle = NftHandle()
        said = [handle.attempt_lines(f"{text}\nflush ruleset\n") or "" for text in self._texts]
        (self._folder / "said").write_text(json.dumps(said))
        handle.close()


def test_no_file_is_opened_wherever_one_is_named(tmp_path: Path) -> None:
    """A line that includes a file is put anywhere: nft is given only what it opens no file for."""
    rng = random.Random(7)
    marker = tmp_path / "marker"
    marker.write_text("nonsense-of-the-marker\n")
    lines = [
        f'{word} "{marker}"' for word in ("include", " include ", "\tinclude\t", "x include", "# include")
    ]
    lines += [
        f'; include "{marker}";',
        f'\ninclude "{marker}"\n',
        f'}}\ninclude "{marker}"\n{{',
        f'"include {marker}"',
    ]
    texts = [(CORPUS / "hostile" / "n10.nft").read_text().replace('include "/etc/hostname";', "")]
    texts += [path.read_text() for path in LISTINGS if path.stat().st_size < 6000]
    raw, given = [], []
    for _ in range(600):
        text = rng.choice(texts)
        at = rng.choice([m.end() for m in re.finditer(r"[;{}\n\s]", text)])
        text = text[:at] + rng.choice(lines) + text[at:]
        raw.append(text)
        try:
            listing = read_listing(text, name="x.nft")
        except ParseError:
            continue
        given += [script.text for script in listing.scripts]
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="n")
    with open_session(node, Checks([*raw, *given], tmp_path)):
        pass
    said = json.loads((tmp_path / "said").read_text())
    opened = ["nonsense-of-the-marker" in one for one in said]
    assert sum(opened[: len(raw)]) > 50, "nft does include a file in many of these places"
    assert len(given) > 30
    assert not any(opened[len(raw) :])


class Loops(GivenNftLoader):
    """Never comes back, and has a second for that."""

    def load(self, tap: TapNode) -> None:
        limits._SECONDS = 1  # type: ignore[misc]
        super().load(tap)

    def _load(self, handle: NftHandle, script: Script) -> None:
        while True:
            pass


def test_a_ruleset_that_takes_too_long_is_told() -> None:
    listing = read_listing("table ip a {\n}\n", name="x.nft")
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="n")
    with (
        pytest.raises(
            InputError, match=r"x\.nft: this ruleset was not loaded: it took far more processor time"
        ),
        nftgiven._opened("x.nft", open_session(node, Loops(listing, Family.IP))),
    ):
        pass


def test_a_library_that_does_not_come_back_is_no_reason_to_stay(tmp_path: Path) -> None:
    """SIGTERM ends the command while its child waits for a FIFO that nobody writes to."""
    fifo, rules = tmp_path / "fifo", tmp_path / "rules"
    os.mkfifo(fifo)
    rules.write_text("*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n")
    code = f"""
import sys
from nfparity.cli import main
from tests.kernel.test_given_nft_hostile import Waits
import backends.given_nftables.backend as module
from backends.model.contract import Availability
module.GivenNftLoader = lambda listing, family: Waits({str(fifo)!r})
module.GivenNftBackend.probe = lambda self: Availability(True)
sys.exit(main(["diff", {str(rules)!r}, "--random", "3", "--against", {str(tmp_path / "given.nft")!r}]))
"""
    (tmp_path / "given.nft").write_text("table ip a {\n}\n")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    # The child has come so far that it opens the FIFO.
    with open(fifo, "w"):
        pass
    process.terminate()
    assert process.wait(60) == 143


class Waits(NftablesLoader):
    """Opens a FIFO for reading, twice: the second time nobody writes."""

    def __init__(self, path: str) -> None:
        super().__init__("")
        self._path = path

    def load(self, tap: TapNode) -> None:
        Path(self._path).read_bytes()
        Path(self._path).read_bytes()
