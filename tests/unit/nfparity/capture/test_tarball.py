"""Archives that may come from anybody: read in bounds, as tarfile reads those that mean no harm."""

from __future__ import annotations

import gzip
import io
import os
import random
import resource
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.files.errors import CaptureError
from nfparity.capture import files as capture_files
from nfparity.capture.files import read_files
from nfparity.capture.tarball import read_members

RULES = b"*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
FORMATS = (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)


def tar(members: dict[str, bytes], form: int = tarfile.USTAR_FORMAT, **about: object) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, data in members.items():
            one = tarfile.TarInfo(name)
            one.size = len(data)
            for key, value in about.items():
                setattr(one, key, value)
            archive.addfile(one, io.BytesIO(data))
    return made.getvalue()


def packed(path: Path, data: bytes) -> str:
    path.write_bytes(gzip.compress(data))
    return str(path)


def read(data: bytes) -> dict[str, bytes]:
    return dict(read_members(io.BytesIO(data), lambda name: True, most_members=100))


@pytest.mark.parametrize("form", FORMATS)
def test_all_forms_are_read_as_tarfile_reads_them(form: int) -> None:
    members = {"iptables-save": RULES, "meta.json": b"", "a/" + "b" * 90 + "/c": b"1" * 512, "d\u00e4": b"2"}
    if form != tarfile.USTAR_FORMAT:
        members["e" * 300] = b"3" * 1000
    data = tar(members, form, mtime=1.5 if form == tarfile.PAX_FORMAT else 1, uname="u" * 20)
    assert read(data) == members


def test_a_size_in_base_256() -> None:
    header = bytearray(tar({"iptables-save": RULES})[:512])
    header[124:136] = b"\x80" + len(RULES).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert read(bytes(header) + RULES.ljust(512, b"\0") + bytes(1024)) == {"iptables-save": RULES}


def header(kind: bytes, size: int, name: bytes = b"iptables-save", **fields: bytes) -> bytes:
    made = bytearray(512)
    made[: len(name)] = name
    made[124:136] = b"%011o\0" % size
    made[156:157] = kind
    made[257:265] = b"ustar  \0" if kind == b"S" else b"ustar\00000"
    for at, value in ((int(key[1:]), value) for key, value in fields.items()):
        made[at : at + len(value)] = value
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def pax(records: dict[str, str]) -> bytes:
    text = b""
    for key, value in records.items():
        body = f" {key}={value}\n".encode()
        size = len(body) + 1
        while len(str(size)) + len(body) != size:
            size += 1
        text += str(size).encode() + body
    return header(b"x", len(text), b"pax") + text.ljust(-(-len(text) // 512) * 512, b"\0")


MEMBER = header(b"0", len(RULES)) + RULES.ljust(512, b"\0")
HOSTILE = {
    # 3 GB of nothing, and one block that is there
    "sparse, old GNU": header(b"S", 512, a386=b"27777777000\x0000000001000\0", a483=b"30000000000\0")
    + b"#" * 512,
    "sparse, pax 0.0": pax({"GNU.sparse.size": "3000000000", "GNU.sparse.numblocks": "1"}) + MEMBER,
    "sparse, pax 0.1": pax({"GNU.sparse.map": "a,b,c", "GNU.sparse.size": "1"}) + MEMBER,
    "sparse, pax 1.0": pax({"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"})
    + MEMBER,
    "sparse map that is cut": pax({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})
    + header(b"0", 512)
    + b"999999999\n".ljust(512, b"0"),
    "a size in pax that is no number": pax({"size": "-1"}) + MEMBER,
    "a long size in pax": pax({"size": "9" * 5000}) + MEMBER,
    "a pax header of no records": header(b"x", 512, b"pax") + b"x" * 512 + MEMBER,
    "a pax record of length 0": header(b"x", 512, b"pax") + b"0 a=b\n".ljust(512, b"\0") + MEMBER,
    "a pax record with a long length": header(b"x", 512, b"pax") + b"9" * 512 + MEMBER,
    "a pax header of a gigabyte": header(b"x", 1 << 30, b"pax") + bytes(1 << 16),
    "a name of a gigabyte": header(b"L", 1 << 30, b"long") + bytes(1 << 16),
    "a size below zero": header(b"0", 0, a124=b"\xff" * 12) + MEMBER,
    "a size beyond all bounds": header(b"0", 0, a124=b"\x80" + b"\xff" * 11) + MEMBER,
    "a size that is no number": header(b"0", 0, a124=b"12x") + MEMBER,
    "a wrong check sum": b"x" + MEMBER[1:],
    "a header that is cut": MEMBER + MEMBER[:100],
    "content that is cut": MEMBER[:600],
    "nothing of it is tar": b"*filter\nCOMMIT\n" * 100,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_means_harm_is_refused(what: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"not a \.tar\.gz that can be read: "):
        read_files(packed(tmp_path / "n.tar.gz", HOSTILE[what]))


def test_no_memory_is_given_to_what_is_only_claimed(tmp_path: Path) -> None:
    paths = [packed(tmp_path / f"{n}.tar.gz", data) for n, data in enumerate(HOSTILE.values())]
    code = """
import sys
from harness.files.errors import CaptureError
from nfparity.capture.files import read_files
for path in sys.argv[1:]:
    try:
        read_files(path)
    except CaptureError:
        continue
    sys.exit(path)
"""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    done = subprocess.run(
        (sys.executable, "-c", code, *paths),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[4],
        preexec_fn=limited,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_not_wanted_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "n.tar.gz", tar({"readme": bytes(1 << 20), "iptables-save": RULES}))
    assert read_files(path) == {"iptables-save": RULES}
    monkeypatch.setattr(capture_files, "MOST_BYTES", 1 << 19)
    with pytest.raises(CaptureError, match="contains more than"):
        read_files(path)


@pytest.mark.parametrize("form", FORMATS)
def test_archives_that_are_changed_anywhere(form: int, tmp_path: Path) -> None:
    """As tarfile reads them, or refused."""
    rng = random.Random(form)
    long = "x/" * 60 if form != tarfile.USTAR_FORMAT else ""
    good = tar({"iptables-save": RULES, f"{long}meta.json": b"{}"}, form)
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(data))
            data[at] = rng.choice((0, 0xFF, ord("S"), ord("x"), ord("7"), ord("9"), rng.randrange(256)))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        try:
            found = read(bytes(data))
        except CaptureError:
            continue
        assert sum(map(len, found.values())) <= len(data)


def test_links_and_fifos_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder, secret = tmp_path / "node", tmp_path / "secret"
    folder.mkdir()
    secret.write_bytes(RULES)
    (folder / "iptables-save").symlink_to(secret)
    with pytest.raises(CaptureError, match="iptables-save: a symbolic link, which is not followed"):
        read_files(str(folder))
    (folder / "iptables-save").unlink()
    os.mkfifo(folder / "iptables-save")
    with pytest.raises(CaptureError, match="iptables-save: not a regular file"):
        read_files(str(folder))
    (tmp_path / "latest").symlink_to(folder)
    (folder / "iptables-save").unlink()
    (folder / "iptables-save").write_bytes(RULES)
    assert read_files(str(tmp_path / "latest")) == {"iptables-save": RULES}


def test_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "iptables-save").open("wb") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr(capture_files, "MOST_BYTES", 1 << 20)
    with pytest.raises(CaptureError, match="contains more than 1 MiB"):
        read_files(str(tmp_path))
