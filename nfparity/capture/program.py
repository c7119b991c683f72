"""The capture command, for ``nfparity capture`` and for the standalone file."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time

from harness.files.errors import BAD_INPUT, CaptureError
from harness.files.output import standard_streams
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.capture.armour import armoured
from nfparity.capture.files import packed, read_files, write_files
from nfparity.capture.node import capture_node

__all__ = ["EXAMPLE", "configure", "main", "run"]

EXAMPLE = """\
example:
  nfparity capture -o node-7.tar.gz
  nfparity capture --from node-7.tar.gz --anonymise -o anonymous.tar.gz
  kubectl exec -i POD -- sh -c 'cat > /tmp/capture && python3 /tmp/capture -o -' \\
    < build/nfparity-capture.pyz > node-7.tar.gz

Reads the rules of iptables-legacy and of iptables-nft, IPv4 and IPv6, ipsets, nftables, addresses,
routes, routing rules, sysctls and versions, and changes nothing: it loads no module and creates no table.
nftables expressions are tried in a network namespace of their own, or with nft --check.
Needs root in the node's network namespace. Parts that cannot be read are listed here and in meta.json.

--anonymise: prefixes stay prefixes, ranges stay ranges, equal addresses stay equal and private addresses
stay private; loopback, link-local IPv4 and multicast addresses are not changed. Names of namespaces,
services, hosts, interfaces, sets and chains, and comments, are replaced word by word, in the same way in all
files, except for words that every cluster has. Ports, marks, versions, counters and times are not changed.
The key is random and not stored.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR|FILE.tar.gz",
        help="a new folder, a new .tar.gz, or - for a .tar.gz on standard output; "
        "default: snapshot-HOST-TIME.tar.gz",
    )
    parser.add_argument(
        "--anonymise",
        action="store_true",
        help="replace addresses and names; packets are treated the same, see below",
    )
    parser.add_argument(
        "--text",
        action="store_true",
        help="with -o -: as text with a checksum, for the log of a container",
    )
    parser.add_argument(
        "--from", dest="source", metavar="SNAPSHOT", help="read this snapshot instead of the node"
    )


def run(arguments: argparse.Namespace) -> int:
    """Capture, write, and print the missing parts. Raises CaptureError."""
    now = time.time()
    output = arguments.output
    if arguments.text and output != "-":
        raise CaptureError("--text needs -o -")
    if output == "-" and not arguments.text and sys.stdout.isatty():
        raise CaptureError("an archive cannot be printed on a terminal; use -o FILE.tar.gz")
    if arguments.source is None:
        files, notes = capture_node(now=now)
    else:
        files, notes = read_files(arguments.source), ()
    if arguments.anonymise:
        files, mapping = anonymise(files, secrets.token_bytes(32))
        if mapping.unchanged():
            notes = (
                *notes,
                f"addresses that could not be replaced: {mapping.unchanged()} (ranges that lie close"
                " together prevent it)",
            )
    if output is None:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        host = "" if arguments.anonymise or arguments.source is not None else f"{os.uname().nodename}-"
        output = f"snapshot-{host}{stamp}.tar.gz"
    if arguments.text:
        sys.stdout.write(armoured(packed(files, now=now)))
    else:
        write_files(output, files, now=now)
    for line in notes:
        print(f"nfparity: {line}", file=sys.stderr)
    if output != "-":
        print(output)
    return 0


def main() -> int:
    """Run as a standalone program; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="nfparity-capture",
        description="A snapshot of this node for nfparity.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    configure(parser)
    with standard_streams():
        try:
            status = run(parser.parse_args())
            sys.stdout.flush()
            return status
        except CaptureError as e:
            print(f"nfparity-capture: {e}", file=sys.stderr)
            return e.status
        except BrokenPipeError:
            return BAD_INPUT
