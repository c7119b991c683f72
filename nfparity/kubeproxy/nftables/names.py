"""Names of the chains and sets of kube-proxy's nftables mode.

``hashAndTruncate`` of ``pkg/proxy/nftables/proxier.go``: eight characters of a hash, and the name itself.
"""

from __future__ import annotations

from nfparity.kubeproxy.chains import name_hash
from nfparity.kubeproxy.service import Endpoint, Service
from translate.ir import Family, format_address

__all__ = ["endpoint_base", "service_base"]

_LONGEST = 240
"""``chainNameBaseLengthMax``: NFT_NAME_MAXLEN less the longest prefix."""


def service_base(service: Service, family: Family) -> str:
    """Return the names of a service's chains without their prefix.

    For a service without a name, its address and port are used.
    """
    return _hashed(_plain(service, family))


def endpoint_base(service: Service, endpoint: Endpoint, family: Family) -> str:
    """Return the names of an endpoint's chain and affinity set without their prefix."""
    address = format_address(family, endpoint.address).replace(":", ".")
    return _hashed(f"{_plain(service, family)}__{address}/{endpoint.port}")


def _plain(service: Service, family: Family) -> str:
    if service.name is None:
        place = service.label(family).partition("/")[0]
        plain = "".join(c if c.isalnum() or c in ".-" else "." for c in place)
        return f"unnamed/{plain}/{service.protocol}/"
    owner, _, port = service.name.partition(":")
    return f"{owner}/{service.protocol}/{port}"


def _hashed(name: str) -> str:
    whole = f"{name_hash(name)[:8]}-{name}"
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 3]}..."
