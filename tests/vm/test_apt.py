from __future__ import annotations

import pytest

from vm.apt import KEYRING, Sources, machine_sources

TEMPLATE = """\
Suite: {series}
BaseURI: https://default.example/debian/
Description: Debian

Suite: {series}-security
BaseURI: https://security.example/
"""
DEFAULT = Sources("https://default.example/debian", "https://security.example/debian-security")


def test_takes_the_mirror_that_the_machine_uses() -> None:
    found = machine_sources(
        "http://mirror.example/debian/\nhttp://mirror.example/debian/\nhttp://mirror.example/debian-security/\n",
        TEMPLATE,
    )
    assert found == Sources("http://mirror.example/debian", "http://mirror.example/debian-security")


def test_other_distributions_and_third_parties_are_no_debian_mirrors() -> None:
    listing = "http://archive.example/ubuntu/\nhttps://other.example/linux/debian-stable/\n"
    assert machine_sources(listing, TEMPLATE) == DEFAULT


def test_a_cd_is_no_mirror() -> None:
    assert machine_sources("cdrom://[Debian 12]/debian/\n", TEMPLATE) == DEFAULT


def test_each_half_falls_back_by_itself() -> None:
    found = machine_sources("https://mirror.example/debian\n", TEMPLATE)
    assert found == Sources("https://mirror.example/debian", DEFAULT.security)


def test_debians_own_address_has_both_archives() -> None:
    found = machine_sources("http://deb.debian.org/debian\n", TEMPLATE)
    assert found == Sources("http://deb.debian.org/debian", "http://deb.debian.org/debian-security")


def test_without_any_address_there_are_no_sources() -> None:
    assert machine_sources("https://mirror.example/debian\n", "") is None


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_sources_are_signed_and_of_one_release(release: str) -> None:
    lines = DEFAULT.render(release).splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        f"{DEFAULT.main} {release} main",
        f"{DEFAULT.security} {release}-security main",
    ]
    assert all(f"signed-by={KEYRING}" in line for line in lines)
