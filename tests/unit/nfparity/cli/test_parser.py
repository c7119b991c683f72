"""Words of the command line that are wrong: what was meant, and one line of usage."""

from __future__ import annotations

import pytest

from nfparity.cli import main


@pytest.mark.parametrize(
    ("words", "said", "usage"),
    [
        ("dif", "unknown command 'dif'; did you mean diff?", "usage: nfparity [options] COMMAND"),
        ("frobnicate", "unknown command 'frobnicate'; choose from translate, simulate,", "usage: nfparity ["),
        ("--verion", "unknown option --verion; did you mean --version?", "usage: nfparity [options] COMMAND"),
        ("diff --bakends x", "unknown option --bakends; did you mean --backends?", "usage: nfparity diff [o"),
        ("diff r --corpos=x", "unknown option --corpos; did you mean --corpus?", "usage: nfparity diff [o"),
        ("diff r --xyzzy", "unknown option --xyzzy\n", "usage: nfparity diff [options] [RULES]"),
        ("translate r", "the following arguments are required: --to", "RULES --to nft|bpf|iptables|ir "),
        (
            "translate r --too nft",
            "unknown option --too; did you mean --to?",
            "RULES --to nft|bpf|iptables|ir ",
        ),
        ("translate r --to nftt", "--to: 'nftt' is not a choice; did you mean nft?", "usage: nfparity trans"),
        (
            "graph r --family ipx",
            "--family: 'ipx' is not a choice; did you mean ip?",
            "usage: nfparity graph",
        ),
        ("graph r --table x", "'x' is not a choice; choose from raw, mangle, nat,", "usage: nfparity graph"),
        ("graph a b", "unexpected argument 'b'", "usage: nfparity graph [options] RULES"),
        ("tc", "the following arguments are required: ACTION", "nfparity tc load|status|connections|"),
        ("tc lod", "unknown action 'lod'; did you mean load?", "usage: nfparity tc load|"),
        (
            "corpus generate r --sed 3",
            "unknown option --sed; did you mean --seed?",
            "nfparity corpus generate",
        ),
        (
            "migrate plan --keep-table natt",
            "'natt' is not a choice; did you mean nat?",
            "nfparity migrate plan",
        ),
        ("diff r --random x", "'x' is not a count", "usage: nfparity diff"),
        (
            "assess",
            "the following arguments are required: SNAPSHOT",
            "usage: nfparity assess [options] SNAPSHOT",
        ),
    ],
)
def test_two_lines_tell_what_is_wrong(
    words: str, said: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    message, line = shown.err.splitlines()
    assert message.startswith("nfparity: ")
    assert said.rstrip("\n") in message
    assert not said.endswith("\n") or message.endswith(said.rstrip("\n"))
    assert usage in line
    assert line.endswith("--help shows more)")
    assert len(line) < 160
