"""The API objects that are created: a namespace, and a pod for each node.

The rights of the pod are those of ``deploy/capture.yaml``, which gives the reasons; a test compares them.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["MANAGED", "SELECTOR", "namespace", "pinned", "pod"]

MANAGED = {"app.kubernetes.io/managed-by": "kubectl-nfparity"}
SELECTOR = "app.kubernetes.io%2Fmanaged-by%3Dkubectl-nfparity"
"""The labels of every object, and their selector in a path."""

_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def pinned(image: str) -> bool:
    """Return whether a reference names an image by its digest."""
    return _DIGEST.fullmatch(image) is not None


def namespace(name: str) -> dict[str, Any]:
    """Return the namespace of a run."""
    labels = {**MANAGED, "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pod(name: str, *, node: str, image: str, seconds: int, anonymise: bool) -> dict[str, Any]:
    """Return the pod that captures a node. It ends by itself after ``seconds``."""
    more = ["--anonymise"] if anonymise else []
    capture = {
        "name": "capture",
        "image": image,
        "command": ["python3", "/nfparity-capture.pyz", "-o", "-", "--text", *more],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
        },
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds,
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [capture],
    }
    metadata = {"name": name, "labels": MANAGED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
