"""The picture of a packet's path: a file of its own, and the picture in the README."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from tests.lab.commands import run_command

ROOT = Path(__file__).parents[5]
REAL = ROOT / "tests/corpus/rulesets/kube-real"
PACKET = "tcp 10.244.0.5:41000 > 10.244.0.1:31883 in cni0"


def picture(packet: str) -> str:
    rules = (str(REAL / "rules.iptables-save"), "--node", str(REAL / "dataplane.json"))
    done = run_command("explain", *rules, "--packet", packet, "--format", "svg")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_picture_of_the_readme_is_what_its_command_draws() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f'--packet "{PACKET}" --format svg' in readme
    assert "](docs/packet.svg)" in readme
    assert (ROOT / "docs/packet.svg").read_text() == picture(PACKET)


def test_it_fetches_nothing_and_every_box_is_within_it() -> None:
    text = picture(PACKET)
    assert text.count("http") == 1  # the name of its format
    root = ET.fromstring(text)
    boxes = [one for one in root.iter("{http://www.w3.org/2000/svg}g") if "-box" in one.get("class", "")]
    words = ["".join(one.itertext()) for one in boxes]
    assert any("sends to 10.244.0.90:1883" in one for one in words)
    assert "KUBE-NODEPORTS" in " ".join(words)
    for box in boxes:
        x, y = box.get("transform", "")[len("translate(") : -1].split()
        assert int(x) + 50 < int(root.get("width", "0"))
        assert int(y) + 20 < int(root.get("height", "0"))


def test_a_packet_is_needed() -> None:
    done = run_command("explain", str(REAL / "rules.iptables-save"), "--format", "svg")
    assert done.returncode == 2
    assert "--format svg shows the path of a packet" in done.stderr
