"""The page of an explanation."""

from __future__ import annotations

from pathlib import Path

from tests.lab.commands import run_command
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page

KIND = Path(__file__).parents[4] / "corpus/rulesets/kind-node"
RULES = (str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))


def page(packet: str, *words: str) -> Element:
    done = run_command("explain", *RULES, "--packet", packet, "--format", "html", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return checked_page(done.stdout)


def test_each_branch_has_the_path_of_the_packet_and_of_its_reply() -> None:
    root = page("udp 10.244.0.5:1 > 10.96.0.10:53 in pod5", "--reply")
    shown = root.all("dl", "facts")[0].text
    assert "nfparity explain " in shown
    assert "--packet 'udp 10.244.0.5:1 > 10.96.0.10:53 in pod5' --reply --format html" in shown
    branches = root.all("section", "group")
    assert len(branches) == 2
    assert root.all("p", "verdict")[0].text.startswith("The packet leaves by ")
    for number, branch in enumerate(branches, 1):
        assert branch.all("h2")[0].text.startswith(f"Branch {number} of 2, probability 0.5: it leaves by ")
        assert [title.text for title in branch.all("h3")] == ["Why", "The packet", "The reply"]
        assert any("-j DNAT" in hop.text for hop in branch.all("li", "decides"))
        packet, reply = branch.all("svg", "drawing")
        assert "nat KUBE-SERVICES" not in packet.text
        assert "KUBE-SERVICES" in packet.text
        assert "sends to 10.244.0." in packet.all("g", "decides-box")[0].text
        assert reply.all("g", "end-box")
        assert "no: test failed: ip.saddr is" in branch.text


def test_a_packet_without_a_reply() -> None:
    root = page("tcp 10.244.0.5:1 > 192.0.2.1:9 in pod5 ttl 1", "--reply")
    assert "There is no reply, because the packet reached no receiver." in root.text


def test_only_a_packet_has_a_page() -> None:
    done = run_command("explain", *RULES, "--format", "html")
    assert done.returncode == 2
    assert "give --packet" in done.stderr
