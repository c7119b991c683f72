"""Services as addresses: ``shop/web:http`` in a packet stands for the cluster IP and port of that service."""

from __future__ import annotations

import difflib
from typing import Final

from harness.explain.packetspec import Resolve
from nfparity.kubeproxy import recover
from translate.ir import Family, Ruleset

__all__ = ["service_addresses"]

_MOST: Final = 3


def service_addresses(ruleset: Ruleset) -> Resolve:
    """Return a function that finds the address and port of a service in kube-proxy's rules by its name."""

    def resolve(name: str, protocol: str) -> tuple[Family, int, int]:
        services = [service for service in recover(ruleset).services if service.name is not None]
        named = [service for service in services if service.name == name]
        if not named:
            names = sorted({service.name for service in services if service.name is not None})
            near = difflib.get_close_matches(name, names, _MOST) or names[:_MOST]
            known = f"; there is {', '.join(near)}" if near else ""
            raise ValueError(f"these rules have no service {name!r}{known}")
        for service in named:
            if service.protocol == protocol and service.cluster_ip is not None and service.port is not None:
                return ruleset.family, service.cluster_ip, service.port
        protocols = " and ".join(sorted({str(service.protocol) for service in named}))
        raise ValueError(
            f"the service {name} has no cluster IP for {protocol} in these rules, only {protocols}"
        )

    return resolve
