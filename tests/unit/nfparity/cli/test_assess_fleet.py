"""``nfparity assess`` of several snapshots: what it takes, what it says where, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from harness.report.progress import PlainProgress
from nfparity.assess.fleet.job import answer
from nfparity.assess.fleet.node import Answer, NodeDifference
from nfparity.assess.fleet.pool import Pool
from nfparity.assess.snapshots import AssessOptions
from nfparity.cli.main import main
from translate.ir import Family

CORPUS = Path(__file__).resolve().parents[3] / "corpus/rulesets"
RULES = str(CORPUS / "kube-real/rules.iptables-save")
NO_RULESET = str(CORPUS / "kube-real/node.json")
RANGE = ("--service-range", "10.0.0.0/8")
IPVS = str(CORPUS / "kube-ipvs/rules.iptables-save")


class Inline:
    """Answers for what cannot be read, and finds the same of everything else."""

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        for path in paths:
            if Path(path).exists():
                yield Answer(path=path, differences=(NodeDifference("K01", Family.IP, "a/b:c"),), flows=2)
            else:
                yield answer(AssessOptions(), path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[AssessOptions, int | None, str | None]]:
    """The requests to pools, which answer without any dask."""
    found: list[tuple[AssessOptions, int | None, str | None]] = []

    @contextmanager
    def pool(options: AssessOptions, *, workers: int | None, scheduler: str | None) -> Iterator[Pool]:
        found.append((options, workers, scheduler))
        yield Inline()

    monkeypatch.setattr("nfparity.assess.fleet.daskpool.dask_pool", pool)
    return found


def test_lines_on_standard_error_and_one_summary(
    asked: list[tuple[AssessOptions, int | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["assess", RULES, "missing.tar.gz", IPVS, "--workers", "3", "--known-only"]
    assert main([*words, "--kubernetes", "1.30"]) == 2
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in err.splitlines()] == [RULES, "missing.tar.gz", IPVS]
    assert "missing.tar.gz: not assessed: cannot be read" in err
    assert "2 nodes: " in out
    assert f"nfparity assess {RULES} --kubernetes 1.30" in out
    ((options, workers, scheduler),) = asked
    assert (options.version, options.corpus, workers, scheduler) == ((1, 30), False, 3, None)


def test_json_alone_is_on_standard_output(
    asked: list[tuple[AssessOptions, int | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["assess", RULES, IPVS, "--format", "json", "--scheduler", "tcp://127.0.0.1:8786"]
    assert main(words) == 1
    assert json.loads(capsys.readouterr().out)["groups"][0]["snapshots"] == [RULES, IPVS]
    assert asked[0][1:] == (None, "tcp://127.0.0.1:8786")


def test_a_folder_of_one_snapshot_is_a_fleet(
    asked: list[tuple[AssessOptions, int | None, str | None]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "n1.tar.gz").write_bytes(b"")
    assert main(["assess", str(tmp_path)]) == 1
    assert "1 node: n1" in capsys.readouterr().out
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((RULES, IPVS, "--format", "sarif"), "--format sarif"),
        ((RULES, IPVS, "--node", "node.json"), "--node"),
        ((RULES, IPVS, "--against", "missing.nft"), "missing.nft"),
        ((RULES, IPVS, "--against", NO_RULESET), "node.json"),
        ((RULES, IPVS, "--objects", RULES), f"{RULES}:1:1: not JSON"),
        ((RULES, "--workers", "2"), "--workers needs several"),
        ((RULES, "--scheduler", "tcp://x:1"), "--scheduler needs several"),
        ((RULES, IPVS, *RANGE, *RANGE), "given twice for one family"),
    ],
)
def test_bad_input(
    words: tuple[str, ...],
    said: str,
    asked: list[tuple[AssessOptions, int | None, str | None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["assess", *words]) == 2
    assert said in capsys.readouterr().err
    assert not asked


@pytest.mark.parametrize("words", [("--workers", "0"), ("--workers", "-1"), ("--workers", "two")])
def test_bad_options(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["assess", RULES, IPVS, *words])
    assert ended.value.code == 2
    assert "--workers" in capsys.readouterr().err


def test_without_dask_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["assess", RULES, IPVS]) == 3
    assert "'dask' is missing; nfparity doctor lists what to install" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_without_a_loopback_device_it_says_what_to_do() -> None:
    pytest.importorskip("distributed")
    words = [sys.executable, "-m", "nfparity", "assess", "-q", RULES, IPVS]
    done = subprocess.run(["unshare", "--net", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("nfparity: the workers cannot connect to 127.0.0.1: ")
    assert line.endswith("; is lo down? (ip link set lo up)")


def test_quiet_is_without_lines_of_nodes(
    asked: list[tuple[AssessOptions, int | None, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "-q", RULES, IPVS]) == 1
    assert capsys.readouterr().err == ""
    assert len(asked) == 1
    assert main(["assess", "-q", RULES, IPVS, "--format", "sarif"]) == 2
    assert "--format sarif" in capsys.readouterr().err


def test_progress_counts_nodes(
    asked: list[tuple[AssessOptions, int | None, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextmanager
    def lines(stream: TextIO, plain: PlainProgress) -> Iterator[None]:
        yield
        told.append(plain.line(4.0))

    monkeypatch.setattr("harness.report.progress._lines", lines)
    assert main(["assess", RULES, IPVS]) == 1
    assert told == ["assessed 2/2 nodes; 0.5 nodes/s, 4 s so far, about 0 s left"]


def test_one_snapshot_needs_no_dask() -> None:
    script = (
        "import sys; from nfparity.cli.main import main; "
        f"status = main(['assess', {IPVS!r}]); "
        "sys.exit(9 if {'dask', 'distributed'} & set(sys.modules) else status)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
