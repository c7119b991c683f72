from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lab.pycache import compiled_modules

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "hostports"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example project."""
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_text(file.read_text())
    return tmp_path


def run_tests(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", *options)
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        **compiled_modules(),
    }
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_fault_is_reported_at_its_rule(project: Path) -> None:
    rules = project / "hostports.iptables-save"
    rules.write_text(
        rules.read_text().replace("--to-destination 10.0.0.7:8080", "--to-destination 10.0.0.8:8080")
    )
    (line,) = (n for n, text in enumerate(rules.read_text().splitlines(), 1) if "10.0.0.8:8080" in text)
    done = run_tests(
        project, "--nfparity-backends=simulator", "--nfparity-sarif=log.sarif", "--junitxml=junit.xml"
    )
    assert done.returncode == 1
    assert "---- rules that decided about tcp 192.0.2.9:40000 > 192.0.2.1:80 in eth0 ----" in done.stdout
    assert f"\nhostports.iptables-save:{line}: -A EXAMPLE-WEB -p tcp " in done.stdout
    assert "\npolicy DROP of FORWARD in table filter\n" in done.stdout
    (run,) = json.loads((project / "log.sarif").read_text())["runs"]
    places = [
        (
            place["physicalLocation"]["artifactLocation"]["uri"],
            place["physicalLocation"]["region"]["startLine"],
        )
        for result in run["results"]
        for place in result["locations"]
    ]
    assert ("hostports.iptables-save", line) in places
    cases = list(ElementTree.parse(project / "junit.xml").iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert failed == [
        "test_clients_reach_the_host_port[simulator]",
        "test_a_pod_reaches_itself_through_the_host_port[simulator]",
    ]
    assert len(cases) == 5


def test_failures_of_several_processes_are_in_one_log(project: Path) -> None:
    (project / "test_hostports.py").write_text(
        "def test_a(load_rules):\n"
        "    node = {'a': '10.0.0.1/24', 'b': '10.1.0.1/24'}\n"
        "    rules = load_rules('*filter\\n:FORWARD DROP\\nCOMMIT\\n', node)\n"
        "    assert rules.send('udp 10.0.0.2 > 10.1.0.2:53').verdict == 'forward'\n"
    )
    done = run_tests(project, "-n1", "--nfparity-backends=simulator", "--nfparity-sarif=log.sarif")
    assert done.returncode == 1, done.stderr
    (run,) = json.loads((project / "log.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert result["message"]["text"].startswith(
        "test_hostports.py::test_a[simulator]: udp 10.0.0.2 > 10.1.0.2:53: "
    )
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "test_hostports.py"


def test_an_unknown_backend_is_refused(project: Path) -> None:
    done = run_tests(project, "--nfparity-backends=simulator,nft")
    assert done.returncode
    assert (
        "--nfparity-backends: unknown 'nft'; known are simulator, iptables-legacy"
        in done.stdout + done.stderr
    )


def test_without_failures_the_log_is_empty(project: Path) -> None:
    done = run_tests(project, "--nfparity-backends=simulator", "--nfparity-sarif=log.sarif")
    assert done.returncode == 0, done.stdout
    assert json.loads((project / "log.sarif").read_text())["runs"][0]["results"] == []
