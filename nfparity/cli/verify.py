"""``nfparity verify --live``: whether what is loaded is still what was applied, for monitoring."""

from __future__ import annotations

import argparse

from nfparity.cli.migrate import add_state, verify_live
from nfparity.cli.options import add_format
from translate.errors import InputError

_EXAMPLE = """\
example:
  nfparity verify --live
  nfparity verify --live --format json

Compares the nftables table that nfparity migrate apply has loaded with what it was then: chains by their
rules, sets and maps by their elements, whatever order they are printed in. Counters, handles, comments and
what packets put into sets are no difference. Exit status 0: the same; 1: something differs, and by what;
3: it is not there.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--live", action="store_true", help="look at what is loaded in this network namespace"
    )
    add_format(parser, "text", "json")
    add_state(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what differs; 0 for nothing, 1 for something, 3 when it is not there."""
    if not arguments.live:
        raise InputError("verify looks at what is loaded; say --live")
    return verify_live(arguments)
