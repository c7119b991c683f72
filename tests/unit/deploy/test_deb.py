"""The Debian package: its contents, and the command as it is in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "deploy/deb/build.sh"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = [
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb (Debian)"),
    pytest.mark.skipif(
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode != 0,
        reason="needs the repository: the package has its tracked files",
    ),
]


def build(folder: Path, *, umask: int = 0o022) -> Path:
    made = subprocess.run(
        [BUILD, folder], env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}, umask=umask, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.stdout.splitlines() == [f"{folder}/nfparity_{PROJECT['version']}_all.deb"]
    assert len(list(folder.iterdir())) == 1
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root


def fields(package: Path) -> dict[str, str]:
    told = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True, check=True).stdout
    return dict(line.split(": ", 1) for line in told.splitlines() if not line.startswith(" "))


def test_it_depends_on_each_library_of_the_project_in_its_version(package: Path) -> None:
    depends = fields(package)["Depends"].split(", ")
    recommended = fields(package)["Recommends"].split(", ")
    assert recommended == ["python3-msgspec (>= 0.18)"]  # Debian 12 has none, and nfparity works without
    for wanted in PROJECT["dependencies"]:
        name, version = wanted.split(">=")
        assert f"python3-{name} (>= {version})" in depends + recommended
    assert f"python3 ({PROJECT['requires-python'].replace('>=', '>= ')})" in depends
    assert {"python3-nftables", "python3-bpfcc", "nftables", "iptables", "ipset", "iproute2"} <= set(depends)


def test_files_belong_to_root_and_nobody_else_may_write_them(package: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        mode, owner = line.split()[:2]
        assert mode in ("drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x")
        assert owner == "root/root"


def test_modules_are_in_a_private_folder_and_only_those_of_the_product(installed: Path) -> None:
    assert not list(installed.glob("usr/lib/python3*"))
    share = installed / "usr/share/nfparity"
    assert {path.name for path in share.iterdir()} == {
        "backends", "harness", "nfparity", "nfparity-capture.pyz", "translate",
    }  # fmt: skip
    tracked = subprocess.run(
        ["git", "ls-files", "translate", "backends", "harness", "nfparity"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = {str(path.relative_to(share)) for path in share.rglob("*") if path.is_file()}
    assert found == {*tracked.splitlines(), "nfparity-capture.pyz"}


def test_the_documents_that_the_policy_asks_for(installed: Path) -> None:
    folder = installed / "usr/share/doc/nfparity"
    assert "Apache-2.0" in (folder / "copyright").read_text()
    assert (folder / "commands.md").is_file()
    changelog = subprocess.run(["zcat", folder / "changelog.gz"], capture_output=True, text=True, check=True)
    assert changelog.stdout.startswith(f"nfparity ({PROJECT['version']}) ")


def test_man_pages_and_completion(installed: Path) -> None:
    share = installed / "usr/share"
    assert {"nfparity.1.gz", "nfparity-assess.1.gz"} <= {page.name for page in share.glob("man/man1/*")}
    for file in (
        "bash-completion/completions/nfparity",
        "zsh/vendor-completions/_nfparity",
        "fish/vendor_completions.d/nfparity.fish",
    ):
        assert "translate" in (share / file).read_text()


def test_the_command_takes_its_own_modules_before_all_others(installed: Path, tmp_path: Path) -> None:
    """As in the package, except for the folder; a module translate of somebody else's is in the way."""
    launcher = (installed / "usr/bin/nfparity").read_text()
    command = tmp_path / "nfparity"
    command.write_text(launcher.replace("/usr/share/nfparity", f"{installed}/usr/share/nfparity"))
    (tmp_path / "translate.py").write_text("raise SystemExit(99)")
    rules = tmp_path / "rules"
    rules.write_text("*filter\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n")
    flags = launcher.splitlines()[0].split()[1:]
    done = subprocess.run(
        [sys.executable, *flags, command, "translate", rules, "--to", "nft"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tcp dport 22 accept" in done.stdout


@pytest.mark.slow
def test_the_same_commit_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert build(tmp_path, umask=0o077).read_bytes() == package.read_bytes()
