"""The sessions of the documentation are run, and their output is compared with the page."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from tests.kernel.helpers.scenes import NOT_RUN, SCENES, Scene
from tests.lab.sessions import Example, examples, first_mismatch

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("examples/*/README.md")),
)  # fmt: skip
_NAMESPACES: Final = (
    *IN_OWN_MOUNTS,
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


@functools.cache
def all_examples() -> tuple[Example, ...]:
    return tuple(example for page in PAGES for example in examples(ROOT, page))


def session_of(scene: Scene) -> Example:
    found = [
        example for example in all_examples()
        if example.page == scene.page
        and example.commands
        and example.commands[0].text.startswith(scene.begins)
    ]  # fmt: skip
    assert len(found) == 1, f"{scene.page}: no session begins with {scene.begins!r}"
    return found[0]


def test_every_session_is_run_or_has_a_reason() -> None:
    sessions = {str(example) for example in all_examples() if example.commands}
    run = {str(session_of(scene)) for scene in SCENES}
    not_run = {str(session_of(Scene(page, begins))) for page, begins in NOT_RUN}
    assert not run & not_run
    assert sessions == run | not_run
    named = [name for reason in NOT_RUN.values() for name in re.findall(r"tests/\S+\.py", reason)]
    assert len(named) == 5
    assert all((ROOT / name).is_file() for name in named)


def _script(session: Example, results: Path) -> str:
    """The commands in one shell, because they change its folder and variables; sudo is left out."""
    lines = []
    for number, command in enumerate(session.commands):
        text = command.text.removeprefix("sudo ")
        lines.append(f"{{ {text}\n}} >{results}/{number} 2>&1; echo $? >{results}/{number}.status")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "scene",
    [pytest.param(one, id=f"{one.page}:{one.begins}", marks=[pytest.mark.slow] * one.slow) for one in SCENES],
)
def test_a_session_gives_what_its_page_shows(scene: Scene, tmp_path: Path) -> None:
    session = session_of(scene)
    folder, results = tmp_path / "folder", tmp_path / "results"
    results.mkdir()
    if scene.folder is None:
        folder.mkdir()
        if "tests/corpus" in session.text:
            (folder / "tests").mkdir()
            shutil.copytree(ROOT / "tests/corpus", folder / "tests/corpus")
    else:
        shutil.copytree(ROOT / scene.folder, folder)
    state = "ip link set lo up; mkdir -p /var/lib/nfparity; mount -t tmpfs tmpfs /var/lib/nfparity"
    script = f"set -e\n{state}\n{scene.setup}\nset +e\n{_script(session, results)}"
    done = subprocess.run(
        [*_NAMESPACES, "sh", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
            "XTABLES_LOCKFILE": str(tmp_path / "lock"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for number, command in enumerate(session.commands):
        output = (results / str(number)).read_text(encoding="utf-8")
        assert "Traceback" not in output
        assert int((results / f"{number}.status").read_text()) in (0, 1, 2), output
        if command.shown:
            mismatch = first_mismatch(command.shown, output)
            assert mismatch is None, f"{session}: {command.text}: not as shown:\n{mismatch}\n\n{output}"
