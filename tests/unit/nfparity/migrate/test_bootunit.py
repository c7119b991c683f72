from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nfparity.migrate.bootunit import NAME, disable, enable, is_enabled, unit_text
from translate.errors import MachineError


def test_it_is_enabled_and_disabled(tmp_path: Path) -> None:
    assert not is_enabled(tmp_path)
    path = enable(tmp_path, Path("/var/lib/nfparity/migrate/machine"))
    assert enable(tmp_path, Path("/var/lib/nfparity/migrate/machine")) == path
    assert is_enabled(tmp_path)
    assert (tmp_path / "sysinit.target.wants" / NAME).resolve() == path
    disable(tmp_path)
    assert not is_enabled(tmp_path)
    assert not path.exists()
    disable(tmp_path)


def test_outside_of_the_host_there_is_no_unit() -> None:
    assert not is_enabled(None)
    disable(None)


@pytest.mark.parametrize("folder", ["/var/lib/nfparity/migrate/machine", "/srv/a b/50%"])
def test_systemd_takes_it(folder: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / NAME
    path.write_text(unit_text(Path(folder)))
    command = ("systemd-analyze", "verify", "--man=no", str(path))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    about = [line for line in done.stderr.split("\n") if NAME in line]
    assert (done.returncode, about) == (0, [])


def test_it_comes_before_the_network() -> None:
    lines = unit_text(Path("/a b/50%"), "/usr/bin/python3").split("\n")
    assert "Wants=network-pre.target" in lines
    assert any(line.startswith("Before=network-pre.target ") for line in lines)
    assert 'RequiresMountsFor="/a b/50%%"' in lines
    assert 'ExecStart=/usr/bin/python3 -P -m nfparity migrate load --state "/a b/50%%"' in lines


@pytest.mark.parametrize("folder", ["/a\nb", '/a"b', "/a$b", "/a\\b"])
def test_paths_that_a_unit_cannot_contain(folder: str) -> None:
    with pytest.raises(MachineError, match="special characters"):
        unit_text(Path(folder))
