"""``nfparity doctor``: the backends that can run on this machine, and the packages to install."""

from __future__ import annotations

import argparse
import json
from typing import Final

from nfparity.cli.options import add_format
from translate.dataclass import asdict

_EXAMPLE = """\
example:
  nfparity doctor

Exit status 0 when every backend can run, 3 when one cannot.
"""


_TITLES: Final = {
    "machine": "machine",
    "program": "programs",
    "library": "Python libraries",
    "backend": "backends",
    "test": "only for the project's own tests",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print each check; return 3 when a backend cannot run."""
    from nfparity.doctor import diagnose, packages_to_install

    checks = diagnose()
    install, tests = packages_to_install(checks), packages_to_install(checks, tests=True)
    if arguments.format == "json":
        data = {
            "checks": [asdict(c) for c in checks],
            "install": list(install),
            "install_for_tests": list(tests),
        }
        print(json.dumps(data, indent=2))
    else:
        width = max(len(c.name) for c in checks)
        kind = ""
        for check in checks:
            if check.kind != kind:
                kind = check.kind
                print(f"{_TITLES[kind]}:")
            first, *more = check.detail.splitlines() or [""]
            print(f"  {'ok' if check.ok else '--'}  {check.name:<{width}}  {first}")
            for line in more:
                print(f"      {'':<{width}}  {line}")
        if install:
            print(f"\nto install what nfparity lacks:\n  sudo apt install {' '.join(install)}")
        if tests:
            print("\nfor the project's own tests (make test and make diff-test install these packages):")
            print(f"  sudo apt install {' '.join(tests)}")
    return 0 if all(c.ok for c in checks if c.kind == "backend") else 3
