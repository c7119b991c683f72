"""The form of the API objects that manifests here use: field names and types of Kubernetes 1.20 to 1.33."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["check"]

_STRINGS: Final = {str: str}
"""A map of strings; a list is written as a list with one form, an object as a dict."""

_QUANTITIES: Final = {"cpu": str, "memory": str}
_SECURITY: Final = {
    "allowPrivilegeEscalation": bool,
    "readOnlyRootFilesystem": bool,
    "capabilities": {"drop": [str], "add": [str]},
}
_CONTAINER: Final = {
    "name": str,
    "image": str,
    "command": [str],
    "securityContext": _SECURITY,
    "resources": {"requests": _QUANTITIES, "limits": _QUANTITIES},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
_POD: Final = {
    "nodeName": str,
    "nodeSelector": _STRINGS,
    "restartPolicy": str,
    "activeDeadlineSeconds": int,
    "hostNetwork": bool,
    "automountServiceAccountToken": bool,
    "enableServiceLinks": bool,
    "terminationGracePeriodSeconds": int,
    "tolerations": [{"operator": str}],
    "securityContext": {"runAsUser": int, "runAsGroup": int, "seccompProfile": {"type": str}},
    "initContainers": [_CONTAINER],
    "containers": [_CONTAINER],
    "volumes": [{"name": str, "emptyDir": {"medium": str, "sizeLimit": str}}],
}
_META: Final = {"name": str, "namespace": str, "labels": _STRINGS}
_DAEMON: Final = {
    "selector": {"matchLabels": _STRINGS},
    "updateStrategy": {"type": str, "rollingUpdate": {"maxUnavailable": str}},
    "template": {"metadata": _META, "spec": _POD},
}
_KINDS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("v1", "Namespace"): {"metadata": _META},
    ("v1", "Pod"): {"metadata": _META, "spec": _POD},
    ("apps/v1", "DaemonSet"): {"metadata": _META, "spec": _DAEMON},
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {
        "metadata": _META,
        "rules": [{"apiGroups": [str], "resources": [str], "verbs": [str]}],
    },
}


def check(item: dict[str, Any]) -> None:
    """Insist on known fields and their types."""
    kind = item["apiVersion"], item["kind"]
    assert kind in _KINDS, kind
    _check(item, {"apiVersion": str, "kind": str, **_KINDS[kind]}, kind[1])


def _check(value: Any, form: Any, path: str) -> None:
    if isinstance(form, list):
        assert isinstance(value, list), path
        for number, member in enumerate(value):
            _check(member, form[0], f"{path}[{number}]")
    elif isinstance(form, dict):
        assert isinstance(value, dict), path
        for key, member in value.items():
            assert key in form or str in form, f"{path}.{key}"
            _check(member, form.get(key, form.get(str)), f"{path}.{key}")
    else:
        assert type(value) is form, f"{path}: {value!r}"
