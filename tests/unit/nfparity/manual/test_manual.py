"""Man pages and completion have every command and option that the parsers have."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nfparity.cli.main import COMMANDS, SUMMARY, make_parser
from nfparity.manual.__main__ import write_files
from nfparity.manual.commands import Command, read_parser
from nfparity.manual.fish import _condition, fish_completion
from nfparity.manual.manpage import man_page, page_name
from nfparity.manual.zsh import zsh_completion


@pytest.fixture(scope="module")
def root() -> Command:
    return read_parser(make_parser(COMMANDS), SUMMARY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("share")
    write_files(made)
    return made


def completed(folder: Path, line: str) -> set[str]:
    """The words that bash offers for the last one of a line."""
    script = (
        'source "$1"; COMP_WORDS=($2); if [[ $2 == *" " ]]; then COMP_WORDS+=(""); fi; '
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nfparity; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    file = folder / "bash-completion/completions/nfparity"
    words = ["bash", "-uec", script, "-", str(file), line]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_every_parser_has_a_page(root: Command, folder: Path) -> None:
    pages = {path.name for path in (folder / "man/man1").iterdir()}
    assert {"nfparity.1", "nfparity-assess.1", "nfparity-migrate-plan.1", "nfparity-tc-load.1"} <= pages
    assert {f"nfparity-{name}.1" for name in COMMANDS} <= pages
    assert len(pages) == len(list(root.walk()))


def test_a_page_has_every_option_with_its_help(root: Command, folder: Path) -> None:
    for command in root.walk():
        text = (folder / f"man/man1/{page_name(command)}.1").read_text().replace("\\-", "-")
        assert f"{page_name(command)} - {command.summary}\n" in text
        for option in command.options:
            assert all(f"\\fB{spelling}\\fR" in text for spelling in option.spellings)
        for action in command.actions:
            assert f"\\fB{page_name(action)}\\fR(1)" in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_reads_every_page_without_a_warning(folder: Path) -> None:
    pages = sorted((folder / "man/man1").iterdir())
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-z", *pages], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_text_is_no_request_and_no_escape() -> None:
    parser = argparse.ArgumentParser(
        prog="p", description="shows", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  p\n\n.so /etc/passwd\n'a \\n é",
    )  # fmt: skip
    parser.add_argument("-x", help=".tar.gz")
    command = read_parser(parser, "shows")
    page = man_page(command, command, "1").splitlines()
    assert "\\&.so /etc/passwd" in page
    assert "\\&'a \\en \\[u00E9]" in page
    assert "\\&.tar.gz" in page
    assert page[page.index(".SH EXAMPLES") :][2:4] == [".nf", "  p"]


def test_bash_offers_commands_actions_options_and_values(folder: Path) -> None:
    assert completed(folder, "nfparity ") == set(COMMANDS)
    assert completed(folder, "nfparity tr") == {"translate"}
    assert completed(folder, "nfparity migrate ro") == {"rollback"}
    assert completed(folder, "nfparity translate --to ") == {"nft", "bpf", "iptables", "ir"}
    assert completed(folder, "nfparity translate rules --kee") == {"--keep-going"}
    assert "--keep-table" in completed(folder, "nfparity migrate plan --")
    assert completed(folder, "nfparity translate rules -o ") == set(), "bash completes files"
    assert "--keep-going" not in completed(folder, "nfparity diff --")


def test_bash_offers_every_option_of_every_command(root: Command, folder: Path) -> None:
    for command in root.walk():
        offered = completed(folder, f"{' '.join(command.path)} -")
        assert offered == {spelling for option in command.options for spelling in option.spellings}


def test_zsh_has_every_option_in_its_commands_function(root: Command) -> None:
    text = zsh_completion(root)
    for command in root.walk():
        body = text.partition(f"\n_{'_'.join(command.path)}() {{\n")[2].partition("\n}\n")[0]
        for option in command.options:
            assert all(re.search(rf"['{{,]\*?{spelling}['\[=+,}}]", body) for spelling in option.spellings)
        assert body.count("[show this help message and exit]") == 1


def test_fish_has_a_line_for_every_option(root: Command) -> None:
    lines = fish_completion(root).splitlines()
    for command in root.walk():
        here = [line for line in lines if f"'{_condition(command)}' " in line]
        for option in command.options:
            one = option.spellings[-1]
            flag = f" -l {one[2:]} " if one.startswith("--") else f" -s {one[1:]} "
            assert sum(flag in line for line in here) == 1


@pytest.mark.parametrize(
    ("shell", "file"),
    [("zsh", "zsh/vendor-completions/_nfparity"), ("fish", "fish/vendor_completions.d/nfparity.fish")],
)
def test_the_shell_reads_its_file(shell: str, file: str, folder: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    subprocess.run([shell, "-n", folder / file], check=True)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_what_is_typed(folder: Path) -> None:
    """In an interactive zsh on a pseudo-terminal (zsh's own module zpty), with the completion system on."""
    script = """
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "PS1=; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -D -u; print re''ady"
        zpty -r shell typed "*ready*"
        zpty -w -n shell "nfparity translate rules --to b"$'\\t'
        zpty -r shell typed "*translate rules --to bpf*" && print bpf
        zpty -w -n shell $'\\C-unfparity migrate ro\\t'
        zpty -r shell typed "*migrate rollback*" && print rollback
    """
    words = ["zsh", "-f", "-c", script, "-", str(folder / "zsh/vendor-completions")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "bpf\nrollback\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_values(folder: Path) -> None:
    file = folder / "fish/vendor_completions.d/nfparity.fish"
    script = f"source {file}; complete -C 'nfparity translate --to '; complete -C 'nfparity migrate ro'"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True)
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} >= {"nft", "bpf", "ir", "rollback"}
