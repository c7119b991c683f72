"""A bill of materials (SPDX 2.3, JSON) from the status file of dpkg in a root."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

__all__ = ["spdx"]

_INSTALLED: Final = "install ok installed"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.-]")


def spdx(status: str, *, name: str, version: str, distribution: str, digest: str, when: int) -> str:
    """Return the document of an image: its Debian packages with versions, sources and suppliers.

    ``digest`` is that of the image. Licences are not asserted: dpkg has no field for them, and each package
    has its own in ``/usr/share/doc/PACKAGE/copyright``.
    """
    image = _package("image", name, version) | {"checksums": [_checksum(digest)]}
    packages = [_debian(fields, distribution) for fields in _installed(status)]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"https://nfparity.example/spdx/{name}-{version}-{digest.removeprefix('sha256:')}",
        "creationInfo": {
            "created": datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: nfparity-make-image"],
        },
        "packages": [image, *packages],
        "relationships": [
            _relationship("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"]),
            *(_relationship(image["SPDXID"], "CONTAINS", package["SPDXID"]) for package in packages),
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _installed(status: str) -> list[dict[str, str]]:
    """Return the fields of each installed package, sorted by name."""
    installed = []
    for paragraph in status.split("\n\n"):
        fields: dict[str, str] = {}
        for line in paragraph.splitlines():
            key, colon, value = line.partition(":")
            if colon and not line.startswith((" ", "\t")):
                fields[key] = value.strip()
        if fields.get("Status") == _INSTALLED:
            installed.append(fields)
    return sorted(installed, key=lambda fields: (fields["Package"], fields["Architecture"]))


def _debian(fields: dict[str, str], distribution: str) -> dict[str, Any]:
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    package = _package(f"{name}-{architecture}", name, version)
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={architecture}&distro={distribution}"
    reference = {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": purl,
    }
    package["externalRefs"] = [reference]
    if "Maintainer" in fields:
        package["supplier"] = f"Organization: {fields['Maintainer']}"
    source = fields.get("Source", name)
    package["sourceInfo"] = f"built from the source package {source}"
    return package


def _package(identifier: str, name: str, version: str) -> dict[str, Any]:
    return {
        "SPDXID": f"SPDXRef-{_UNSAFE.sub('-', identifier)}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def _checksum(digest: str) -> dict[str, str]:
    return {"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}


def _relationship(subject: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}
