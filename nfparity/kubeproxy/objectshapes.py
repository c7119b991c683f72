"""The shapes of the API objects that kube-proxy watches, for the fields used here.

Kubernetes API reference v1.36: Service v1, EndpointSlice discovery.k8s.io/v1, Node v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Final

from translate.jsoninput import FLAG, OBJECT, TEXT, Fields, Items, Leaf, Shape, parse_any_address

__all__ = ["SHAPES"]


def _is_address(value: object) -> bool:
    try:
        return isinstance(value, str) and (value in ("", "None") or parse_any_address(value) is not None)
    except ValueError:
        return False


def _is_range(value: object) -> bool:
    try:
        return isinstance(value, str) and ip_network(value.strip(), strict=False) is not None
    except ValueError:
        return False


def _is_port(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 0xFFFF


_ADDRESS: Final = Leaf(_is_address, "an IP address")
_RANGE: Final = Leaf(_is_range, "a range of addresses")
_PORT: Final = Leaf(_is_port, "a port")
_SECONDS: Final = Leaf(
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 86400,
    "a number of seconds up to 86400",
)
_PROTOCOL: Final = Leaf(lambda value: value in ("TCP", "UDP", "SCTP", ""), "TCP, UDP or SCTP")
_META: Final = Fields(required={"name": TEXT}, optional={"namespace": TEXT, "labels": OBJECT})

_SERVICE: Final = Fields(
    required={
        "metadata": _META,
        "spec": Fields(
            optional={
                "clusterIP": _ADDRESS,
                "clusterIPs": Items(_ADDRESS),
                "type": TEXT,
                "ports": Items(
                    Fields(
                        required={"port": _PORT},
                        optional={"name": TEXT, "protocol": _PROTOCOL, "nodePort": _PORT},
                    )
                ),
                "externalIPs": Items(_ADDRESS),
                "loadBalancerSourceRanges": Items(_RANGE),
                "sessionAffinity": TEXT,
                "sessionAffinityConfig": Fields(
                    optional={"clientIP": Fields(optional={"timeoutSeconds": _SECONDS})}
                ),
                "externalTrafficPolicy": TEXT,
                "internalTrafficPolicy": TEXT,
                "healthCheckNodePort": _PORT,
            }
        ),
    },
    optional={
        "status": Fields(
            optional={
                "loadBalancer": Fields(
                    optional={"ingress": Items(Fields(optional={"ip": _ADDRESS, "ipMode": TEXT}))}
                )
            }
        )
    },
)
_SLICE: Final = Fields(
    required={"metadata": Fields(optional={"namespace": TEXT, "labels": OBJECT})},
    optional={
        "addressType": TEXT,
        "ports": Items(Fields(optional={"name": TEXT, "protocol": _PROTOCOL, "port": _PORT})),
        "endpoints": Items(
            Fields(
                optional={
                    "addresses": Items(_ADDRESS),
                    "nodeName": TEXT,
                    "conditions": Fields(optional={"ready": FLAG}),
                }
            )
        ),
    },
)
_NODE: Final = Fields(
    required={"metadata": _META},
    optional={
        "status": Fields(
            optional={"addresses": Items(Fields(required={"address": TEXT}, optional={"type": TEXT}))}
        )
    },
)

SHAPES: Final[Mapping[str, Shape]] = {"Service": _SERVICE, "EndpointSlice": _SLICE, "Node": _NODE}
"""Shapes by ``kind``."""
