"""The bill of materials: every installed package, and nothing else."""

from __future__ import annotations

import json

from deploy.image.sbom import spdx

STATUS = """\
Package: nftables
Status: install ok installed
Maintainer: Debian Netfilter <team@example.org>
Architecture: amd64
Source: nftables (1.1.3-1)
Version: 1:1.1.3-1+b1
Description: packet filter
 Status: this is no field

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.41-12
"""


def test_packages_and_relationships() -> None:
    text = spdx(STATUS, name="n", version="1", distribution="debian-13", digest="sha256:ab", when=0)
    document = json.loads(text)
    assert document["spdxVersion"] == "SPDX-2.3"
    assert document["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    image, libc, nftables = document["packages"]
    assert image["checksums"] == [{"algorithm": "SHA256", "checksumValue": "ab"}]
    assert (libc["name"], libc["versionInfo"]) == ("libc6", "2.41-12")
    assert libc["sourceInfo"] == "built from the source package libc6"
    assert nftables["sourceInfo"] == "built from the source package nftables (1.1.3-1)"
    assert nftables["supplier"] == "Organization: Debian Netfilter <team@example.org>"
    (reference,) = nftables["externalRefs"]
    assert reference["referenceLocator"] == (
        "pkg:deb/debian/nftables@1%3A1.1.3-1%2Bb1?arch=amd64&distro=debian-13"
    )
    identifiers = [package["SPDXID"] for package in document["packages"]]
    assert len(set(identifiers)) == 3
    related = [(r["spdxElementId"], r["relatedSpdxElement"]) for r in document["relationships"]]
    assert related == [("SPDXRef-DOCUMENT", identifiers[0]), *((identifiers[0], i) for i in identifiers[1:])]
