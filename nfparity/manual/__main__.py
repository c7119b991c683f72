"""``python -m nfparity.manual FOLDER``: man pages and completion in FOLDER, as in ``/usr/share``."""

from __future__ import annotations

import sys
from pathlib import Path

from nfparity.cli.main import COMMANDS, SUMMARY, VERSION, make_parser
from nfparity.manual.bash import bash_completion
from nfparity.manual.commands import read_parser
from nfparity.manual.fish import fish_completion
from nfparity.manual.manpage import man_page, page_name
from nfparity.manual.zsh import zsh_completion

__all__ = ["write_files"]


def write_files(folder: Path) -> None:
    """Write the files."""
    root = read_parser(make_parser(COMMANDS), SUMMARY)
    files = {
        "bash-completion/completions/nfparity": bash_completion(root),
        "zsh/vendor-completions/_nfparity": zsh_completion(root),
        "fish/vendor_completions.d/nfparity.fish": fish_completion(root),
    }
    for command in root.walk():
        files[f"man/man1/{page_name(command)}.1"] = man_page(command, root, VERSION)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
