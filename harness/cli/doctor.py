"""``nfparity doctor``: what can run on this machine, and what to install."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from harness.cli.options import add_format

_EXAMPLE = """\
example:
  nfparity doctor

Exit status 0 when every backend can run, 3 when one cannot.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 3 when a backend cannot run."""
    from harness.doctor import diagnose, packages_to_install

    checks = diagnose()
    install = packages_to_install(checks)
    if arguments.format == "json":
        print(json.dumps({"checks": [asdict(c) for c in checks], "install": list(install)}, indent=2))
    else:
        width = max(len(c.name) for c in checks)
        kind = ""
        for check in checks:
            if check.kind != kind:
                kind = check.kind
                print(f"{kind}:")
            first, *more = check.detail.splitlines() or [""]
            print(f"  {'ok' if check.ok else '--'}  {check.name:<{width}}  {first}")
            for line in more:
                print(f"      {'':<{width}}  {line}")
        if install:
            print(f"\nto install what is missing:\n  sudo apt install {' '.join(install)}")
    return 0 if all(c.ok for c in checks if c.kind == "backend") else 3
