"""API objects: what of a Service counts, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nfparity.kubeproxy import Endpoint, read_objects
from translate.errors import ParseError
from translate.ir import Family


def service(**spec: Any) -> dict[str, Any]:
    full = {"clusterIP": "10.96.0.9", "ports": [{"port": 80, "protocol": "TCP"}], **spec}
    return {"kind": "Service", "metadata": {"name": "b", "namespace": "a"}, "spec": full}


def endpoints(*listed: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": "b-1", "namespace": "a", "labels": {"kubernetes.io/service-name": "b"}},
        "addressType": "IPv4",
        "endpoints": list(listed),
        "ports": [{"port": 8080, "protocol": "TCP"}],
    }


def listed(*items: dict[str, Any]) -> str:
    return json.dumps({"kind": "List", "items": items})


def test_a_list_of_kubectl_is_read() -> None:
    slices = endpoints(
        {"addresses": ["10.0.0.2"], "nodeName": "n1"},
        {"addresses": ["10.0.0.3"], "nodeName": "n2"},
        {"addresses": ["10.0.0.4"], "nodeName": "n1", "conditions": {"ready": False}},
    )
    node = {"kind": "Node", "metadata": {"name": "n1"}}
    objects = read_objects(listed(service(), slices, node, {"kind": "Pod"}), name="objects")
    (one,) = objects.of(Family.IP)
    assert one.name == "a/b"
    assert one.endpoints == (Endpoint(0x0A000002, 8080, local=True), Endpoint(0x0A000003, 8080, local=False))
    assert not objects.of(Family.IP6)


@pytest.mark.parametrize(
    "spec", [{"clusterIP": "None"}, {"type": "ExternalName", "clusterIP": ""}, {"clusterIP": "fd00::9"}]
)
def test_services_of_which_no_rule_is_made(spec: dict[str, Any]) -> None:
    assert not read_objects(listed(service(**spec)), name="objects").of(Family.IP)


def test_defaults_are_those_of_the_api() -> None:
    (one,) = read_objects(listed(service(sessionAffinity="ClientIP")), name="objects").of(Family.IP)
    assert one.affinity == 10800
    assert one.internal_local is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"services": 7}',
        '{"services": [{"spec": {}}]}',
        '{"services": [{"metadata": {"name": "b"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{}]}}]}',
        '{"items": [3]}',
        '{"services": [{"metadata": {"name": "b"}, "spec": {"clusterIP": "ten", "ports": []}}]}',
    ],
)
def test_what_is_no_api_object_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read_objects(text, name="objects.json")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (("spec", "ports", 0, "port"), "port"),
        (("spec", "ports", 0, "nodePort"), "nodePort"),
        (("spec", "ports", 0, "protocol"), "protocol"),
        (("spec", "clusterIP"), "clusterIP"),
        (("spec", "externalIPs"), "externalIPs"),
        (("spec", "sessionAffinityConfig"), "sessionAffinityConfig"),
        (("metadata", "labels"), "labels"),
    ],
)
@pytest.mark.parametrize("value", ["x", ["x"], True, 10**30])
def test_a_value_of_another_type_is_told_with_its_place(
    change: tuple[str | int, ...], key: str, value: object
) -> None:
    one = service(clusterIP="10.0.0.1", ports=[{"port": 80, "nodePort": 30000, "protocol": "TCP"}])
    at: Any = one
    for step in change[:-1]:
        at = at[step]
    at[change[-1]] = value
    text = json.dumps({"services": [one]}, indent=1)
    with pytest.raises(ParseError) as caught:
        read_objects(text, name="objects.json")
    (found,) = caught.value.diagnostics
    assert text.split("\n")[found.origin.line - 1] == found.origin.text
    assert f'"{key}"' in "\n".join(text.split("\n")[found.origin.line - 2 : found.origin.line])


def test_slices_of_names_are_passed_over() -> None:
    piece = {
        "kind": "EndpointSlice",
        "metadata": {},
        "addressType": "FQDN",
        "endpoints": [{"addresses": ["a.b"]}],
    }
    objects = read_objects(listed(piece), name="objects.json")
    assert not list(objects.places(Family.IP))
