"""The options of ``kubectl nfparity``, and the assessment of the captured snapshots."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from typing import Sequence

from harness.files.wholefiles import write_file
from nfparity.kubectl.client import Client, RequestError
from nfparity.kubectl.cluster import Run, remove_leftovers
from nfparity.kubectl.interruption import Interruption, SignalError
from nfparity.kubectl.objects import pinned

__all__ = ["main", "make_parser"]

_EXAMPLE = """\
example:
  kubectl nfparity --node worker-1 --image REGISTRY/nfparity-capture@sha256:...
  kubectl nfparity --all -o snapshots -- --format html >report.html
  kubectl nfparity --cleanup

Creates a namespace and in it a pod on each node. The pod reads the node's rules, interfaces, routes and
sysctls, prints them as its log, and ends. The snapshots are assessed on this machine by nfparity assess; its
options follow --. The namespace is deleted when the logs are read, and also when the run fails or is
interrupted. After SIGKILL nothing can be deleted: the pods end by themselves, and --cleanup removes their
namespaces.

exit status: that of nfparity assess; 2 wrong options; 3 a node was not captured, or something was not
removed; after an interruption 128 and the number of the signal
"""
_BAD_OPTIONS = 2
_FAILED = 3


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the options before ``--``."""
    parser = argparse.ArgumentParser(
        prog="kubectl nfparity",
        description="Capture nodes, and list what kube-proxy's nftables mode would change there.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    nodes = parser.add_mutually_exclusive_group(required=True)
    nodes.add_argument("--node", metavar="NODE", action="append", default=[], help="a node; may be repeated")
    nodes.add_argument("--all", action="store_true", help="all nodes that run Linux")
    nodes.add_argument("--cleanup", action="store_true", help="only remove what killed runs have left")
    parser.add_argument(
        "--image",
        metavar="IMAGE@sha256:DIGEST",
        default=os.environ.get("NFPARITY_IMAGE"),
        help="the image of the pods (make image), by its digest; default: the variable NFPARITY_IMAGE",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FOLDER", help="keep the snapshots, as NODE.tar.gz in this folder"
    )
    parser.add_argument("--capture-only", action="store_true", help="do not assess; needs -o")
    parser.add_argument(
        "-n",
        "--namespace",
        help="create the pods in this namespace, which must allow privileged pods",
    )
    parser.add_argument("--anonymise", action="store_true", help="replace addresses and names on the node")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=int, default=300, help="for a pod to start and end; default: 300"
    )
    parser.add_argument("--context", help="kubectl's option")
    parser.add_argument("--kubeconfig", help="kubectl's option")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    more: list[str] = []
    if "--" in words:
        more = words[words.index("--") + 1 :]
        words = words[: words.index("--")]
    parser = make_parser()
    options = parser.parse_args(words)
    wrong = _wrong(options)
    if wrong is not None:
        parser.error(wrong)
    os.umask(0o077)
    with Interruption() as interruption:
        try:
            return _run(options, more, interruption)
        except SignalError:
            assert interruption.number is not None
            _say("interrupted; nothing is left in the cluster")
            return 128 + interruption.number
        except RequestError as e:
            _say(str(e))
        except OSError as e:
            _say(f"{e.filename or 'kubectl'}: {e.strerror}")
    return _FAILED


def _wrong(options: argparse.Namespace) -> str | None:
    """Return a message about invalid options, before anything is created; None if they are valid."""
    if options.cleanup:
        return None
    if options.image is None or not pinned(options.image):
        return "--image needs an image by its digest, such as REGISTRY/nfparity-capture@sha256:..."
    if options.capture_only and options.output is None:
        return "--capture-only needs -o"
    if not options.capture_only and shutil.which("nfparity") is None:
        return "nfparity is not installed on this machine; --capture-only -o FOLDER captures without it"
    if options.timeout <= 0:
        return "--timeout is a number of seconds"
    return None


def _run(options: argparse.Namespace, more: Sequence[str], interruption: Interruption) -> int:
    client = Client(_kubectl(options), interruption)
    if options.cleanup:
        for name in remove_leftovers(client, interruption):
            _say(f"removed the namespace {name}")
        return 0
    run = Run(
        client, interruption, _say, image=options.image, space=options.namespace,
        limit=options.timeout, anonymise=options.anonymise,
    )  # fmt: skip
    folder = options.output
    if folder is None:
        folder = tempfile.mkdtemp(prefix="nfparity-")
    try:
        os.makedirs(folder, exist_ok=True)
        paths = _captured(run, run.nodes(options.node), folder)
        for node, reason in sorted(run.failures.items()):
            _say(f"{node}: not captured: {reason}")
        if options.capture_only or not paths:
            return _FAILED if run.failures or not paths else 0
        command = ["nfparity", "assess", *more, *paths]
        if options.output is not None:
            _say(f"the snapshots are kept; to assess them again: {shlex.join(command)}")
        status = interruption.run(command, interruptible=True, shown=True).status
        return _FAILED if run.failures else status
    finally:
        if options.output is None:
            shutil.rmtree(folder, ignore_errors=True)


def _captured(run: Run, nodes: Sequence[str], folder: str) -> list[str]:
    """Write the snapshots into a folder; return their paths."""
    paths: list[str] = []

    def keep(node: str, archive: bytes) -> None:
        path = os.path.join(folder, f"{node}.tar.gz")
        write_file(path, archive, mode=0o600)
        _say(f"{node}: captured, {len(archive)} bytes")
        paths.append(path)

    if nodes:
        run.capture(nodes, keep)
    return sorted(paths)


def _kubectl(options: argparse.Namespace) -> list[str]:
    words = [os.environ.get("KUBECTL") or "kubectl"]
    for name in ("context", "kubeconfig"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name}={value}")
    return words


def _say(text: str) -> None:
    print(f"nfparity: {text}", file=sys.stderr, flush=True)
