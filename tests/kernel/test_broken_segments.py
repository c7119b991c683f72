"""TCP segments whose header is too short or longer than the packet: TCPMSS and TCPOPTSTRIP drop them.

Their translations do not, as for other truncated packets (docs/decisions/0028).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

WORDS_OF_HEADERS = {5: True, 4: False, 6: False, 15: False}
"""Lengths of the header in a packet with 20 bytes of it, in words, and whether iptables lets it pass."""

_SCRIPT = """
import json, socket, struct, subprocess, sys
command, rules, listing, words = json.load(sys.stdin)
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
run("ip", "link", "set", "lo", "up")
run(*command, text=rules)
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
header = struct.pack("!HHIIBBHHH", 1000, 2000, 1, 0, words << 4, 2, 100, 0, 0)
try:
    sender.sendto(header, ("127.0.0.1", 0))
except PermissionError:
    pass  # dropped in OUTPUT
print(run(*listing))
"""


def _passed(command: list[str], rules: str, listing: list[str], words: int, pattern: str) -> bool:
    """Return whether a packet comes to the rule behind the target."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _SCRIPT],
        input=json.dumps((command, rules, listing, words)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (count,) = re.findall(pattern, done.stdout, re.MULTILINE)
    return bool(int(count))


@pytest.mark.parametrize("words", WORDS_OF_HEADERS)
@pytest.mark.parametrize("target", ["TCPMSS --set-mss 1000", "TCPOPTSTRIP --strip-options 2"])
def test_only_iptables_drops_them(target: str, words: int) -> None:
    first = f"-A OUTPUT -p tcp -m tcp --tcp-flags SYN,RST SYN -j {target}"
    behind = "-A OUTPUT -p tcp -m nfacct --nfacct-name behind"
    rules = f"*mangle\n{first}\n{behind}\nCOMMIT\n"
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=0)).text
    legacy = rules.replace("nfacct --nfacct-name", "comment --comment")
    saved = ["iptables-legacy-save", "-c", "-t", "mangle"]
    wanted = WORDS_OF_HEADERS[words]
    assert _passed(["iptables-legacy-restore"], legacy, saved, words, r"^\[(\d+):.*behind") is wanted
    counters = ["nft", "list", "counters"]
    assert _passed(["nft", "-f", "-"], text, counters, words, r"counter nfacct_behind \{[^}]*packets (\d+)")
