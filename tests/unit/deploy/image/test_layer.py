"""Layers: the same files give the same bytes, whatever the order and the time of their creation."""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path

from deploy.image.layer import write_layer

WHEN = 1_700_000_000


def tree(root: Path, *, names: tuple[str, ...], time: int) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(0o4755 if name == "bin/su" else 0o644)
        os.utime(path, (time, time))
    (root / "bin/link").symlink_to("su")
    os.link(root / "bin/su", root / "bin/hard")
    os.mkfifo(root / "bin/fifo")
    return root


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    names = ("bin/su", "etc/a", "etc/b")
    first = write_layer(tree(tmp_path / "1", names=names, time=WHEN + 5), tmp_path / "1.layer", when=WHEN)
    again = write_layer(
        tree(tmp_path / "2", names=names[::-1], time=WHEN + 99), tmp_path / "2.layer", when=WHEN
    )
    assert (first.digest, first.content_digest) == (again.digest, again.content_digest)
    assert hashlib.sha256(first.path.read_bytes()).hexdigest() == first.digest
    other = write_layer(
        tree(tmp_path / "3", names=(*names, "etc/c"), time=WHEN), tmp_path / "3.layer", when=WHEN
    )
    assert other.digest != first.digest


def test_modes_links_and_owners(tmp_path: Path) -> None:
    layer = write_layer(tree(tmp_path / "1", names=("bin/su",), time=5), tmp_path / "1.layer", when=WHEN)
    with tarfile.open(layer.path) as archive:
        members = {member.name: member for member in archive}
        assert list(members) == sorted(members)
    assert set(members) == {"bin", "bin/su", "bin/hard", "bin/link"}, "no FIFO"
    assert (members["bin/link"].linkname, members["bin/su"].linkname) == ("su", "bin/hard")
    assert (members["bin/hard"].mode, members["bin/hard"].mtime) == (0o4755, 5)
    assert members["bin"].mtime == WHEN
    assert {member.uname for member in members.values()} == {""}
