"""The plugin as kubectl starts it, on a machine of its own: PATH, home and configuration."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from nfparity.kubectl.package import make
from tests.lab.commands import Done

__all__ = ["IMAGE", "Machine", "make_machine", "node"]

IMAGE: Final = f"registry.example/nfparity-capture@sha256:{'0' * 64}"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_ASSESS: Final = """#!/bin/sh
echo "$@" >"$HOME/assess.words"
for word; do case $word in *.tar.gz) gzip -t "$word" || exit 70 ;; esac; done
echo "a report"
exit $(cat "$HOME/assess.status")
"""


def node(name: str, *, ready: bool = True, system: str = "linux") -> dict[str, Any]:
    """Return a node of the API."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/os": system}},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


@dataclass(frozen=True)
class Machine:
    """The operator's machine: ``bin`` is its PATH, besides that of the system."""

    folder: Path
    kubectl: Path

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.folder / "home"

    def environment(self, address: str) -> dict[str, str]:
        """Return the environment of a shell whose kubectl is configured for an API server."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        (self.folder / "config").write_text(json.dumps(config))
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "KUBECONFIG": str(self.folder / "config"),
        }

    def start(
        self, address: str, *words: str, variables: Mapping[str, str] = _NONE, own_group: bool = False
    ) -> subprocess.Popen[str]:
        """Start ``kubectl nfparity``, in a group of processes of its own on request."""
        return subprocess.Popen(
            [self.folder / "bin/kubectl", "nfparity", *words],
            cwd=self.folder, env={**self.environment(address), **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            process_group=0 if own_group else None,
        )  # fmt: skip

    def run(self, address: str, *words: str, variables: Mapping[str, str] = _NONE) -> Done:
        """Run ``kubectl nfparity``."""
        child = self.start(address, *words, variables=variables)
        out, err = child.communicate(timeout=120)
        return Done(child.returncode, out, err)

    def left_files(self) -> list[str]:
        """Return the temporary files that are left."""
        return os.listdir(self.folder / "tmp")


def make_machine(folder: Path, kubectl: Path, *, assess: str = _ASSESS) -> Machine:
    """Return a machine with kubectl, the plugin, and ``assess`` in the place of nfparity."""
    for name in ("bin", "home", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "bin/kubectl").symlink_to(kubectl.resolve())
    make(folder / "bin/kubectl-nfparity")
    command = folder / "bin/nfparity"
    command.write_text(assess)
    command.chmod(0o755)
    (folder / "home/assess.status").write_text("1")
    return Machine(folder, kubectl)
