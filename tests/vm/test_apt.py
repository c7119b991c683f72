from __future__ import annotations

from vm.apt import DEFAULT_MAIN, DEFAULT_SECURITY, KEYRING, Sources, machine_sources


def test_takes_the_mirror_that_the_machine_uses() -> None:
    found = machine_sources(
        "http://mirror.example/debian/\nhttp://mirror.example/debian/\nhttp://mirror.example/debian-security/\n"
    )
    assert found == Sources(
        main="http://mirror.example/debian", security="http://mirror.example/debian-security"
    )


def test_ubuntu_and_third_parties_are_no_debian_mirrors() -> None:
    found = machine_sources(
        "http://archive.ubuntu.com/ubuntu/\nhttps://download.docker.com/linux/debian-stable/\n"
    )
    assert found == Sources(main=DEFAULT_MAIN, security=DEFAULT_SECURITY)


def test_a_cd_is_no_mirror() -> None:
    assert machine_sources("cdrom://[Debian 12]/debian/\n").main == DEFAULT_MAIN


def test_each_half_falls_back_by_itself() -> None:
    found = machine_sources("https://mirror.example/debian\n")
    assert found == Sources(main="https://mirror.example/debian", security=DEFAULT_SECURITY)


def test_sources_are_signed_and_of_one_release() -> None:
    lines = Sources().render().splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        f"{DEFAULT_MAIN} bookworm main",
        f"{DEFAULT_SECURITY} bookworm-security main",
    ]
    assert all(f"signed-by={KEYRING}" in line for line in lines)
