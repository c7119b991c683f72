from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vm.preload
from translate.errors import MachineError
from vm.kernel import Kernel
from vm.preload import compile_modules, pack, preload_paths


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    root = tmp_path / "kernels" / "6.1"
    for part in (
        "amd64/include/generated",
        "common/include/config/TUN",
        "common/include/linux",
        "common/arch/arm",
    ):
        folder = root / "usr" / "src" / f"linux-headers-6.1-{part}"
        folder.mkdir(parents=True)
        (folder / "a.h").touch()
    return Kernel(series="6.1", version="6.1-amd64", root=root)


def _packed(paths: tuple[Path, ...], archive: Path) -> set[Path]:
    pack(paths, archive)
    listed = subprocess.run(["tar", "-tf", str(archive)], capture_output=True, text=True, check=True).stdout
    return {Path("/", line) for line in listed.splitlines()}


def test_what_every_start_reads_is_there(kernel: Kernel, tmp_path: Path) -> None:
    project = Path(__file__).resolve().parents[2]
    paths = preload_paths(kernel, project=project)
    packed = _packed(paths, tmp_path / "preload.tar")
    headers = kernel.root / "usr" / "src"
    assert {
        Path(sys.executable).resolve(),
        Path(subprocess.__file__).resolve(),
        Path(pytest.__file__).resolve(),
        project / "translate" / "errors.py",
        headers / "linux-headers-6.1-amd64" / "include" / "generated" / "a.h",
        headers / "linux-headers-6.1-common" / "include" / "linux" / "a.h",
    } <= packed
    assert not {path for path in packed if "arm" in path.parts or "TUN" in path.parts}


def test_without_tc_there_is_no_compiler_and_no_header(kernel: Kernel) -> None:
    project = Path(__file__).resolve().parents[2]
    fewer = set(preload_paths(kernel, project=project, tc=False))
    left_out = set(preload_paths(kernel, project=project)) - fewer
    assert [path for path in left_out if path.is_relative_to(kernel.root)]
    assert not [path for path in fewer if path.is_relative_to(kernel.root) or "LLVM" in path.name]


def test_modules_are_compiled_once_and_found_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no bytecode beside the modules, as after pip with PYTHONPYCACHEPREFIX."""
    package = tmp_path / "project/translate"
    package.mkdir(parents=True)
    (package / "once.py").write_text("print(__cached__)\n")
    for name in ("STDLIB", "PURELIB"):
        monkeypatch.setattr(vm.preload, name, tmp_path / "none")
    monkeypatch.setattr(vm.preload, "BINDINGS", ())
    cache = tmp_path / "cache"
    compile_modules(cache, project=tmp_path / "project")
    (compiled,) = cache.rglob("*.pyc")
    assert not list(package.rglob("*.pyc"))
    done = subprocess.run(
        [sys.executable, "-c", "import translate.once"],
        cwd=tmp_path / "project",
        env={"PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(compiled)
    made = compiled.stat().st_mtime_ns
    compile_modules(cache, project=tmp_path / "project")
    assert compiled.stat().st_mtime_ns == made


def test_every_path_can_be_bound_over_itself(kernel: Kernel) -> None:
    paths = preload_paths(kernel, project=Path(__file__).resolve().parents[2])
    assert paths
    assert all(path.exists() and path == path.resolve() for path in paths)
    assert not [(a, b) for a in paths for b in paths if a in b.parents]


def test_an_archive_that_cannot_be_written_is_an_error(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot pack"):
        pack((kernel.root,), tmp_path / "no such folder" / "preload.tar")
