#!/bin/sh
# Prepares this checkout: vm/setup.sh check | run | test | vm
#
#   check   the virtual environment .venv, with .venv/bin/nfparity: enough for lint, types and unit tests
#   run     that, and all that nfparity's commands need: system packages, and kernel headers under build/
#   test    that, and the clients and servers of the project's own tests
#   vm      as run, and QEMU with what builds a guest
#
# System packages come from apt, through sudo when not root; nothing asks questions, and nothing outside .venv is
# installed by pip. Does nothing, quickly, when nothing is missing. Where packages are missing and cannot be
# installed, `vm` gives up; the others say so and go on (tests that need them are skipped with the reason).
set -eu

level=${1:?usage: vm/setup.sh check|run|test|vm}
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

# libnftables and BCC for Python are on PyPI only under other projects' names, hence the system packages.
# file, busybox-static: virtme-ng reads a kernel image's version with the one and boots it with the other.
# python-apt-common: knows Debian's mirrors where apt itself names none (Ubuntu), or not the security archive
# (a root just made by debootstrap); kernel headers come from there.
# debian-archive-keyring: to verify kernels fetched from Debian; Ubuntu does not have it by itself.
system_packages() {
    echo python3-venv
    case $level in
    check) ;;
    run | test | vm) echo nftables iptables ipset ipvsadm iproute2 kmod python3-nftables python3-bpfcc \
        debian-archive-keyring python-apt-common ;;
    *) die "unknown level \"$level\"; one of check, run, test, vm" ;;
    esac
    if [ "$level" = test ]; then echo tcpdump curl bind9-dnsutils dnsmasq-base; fi
    if [ "$level" = vm ]; then echo qemu-system-x86 busybox-static file; fi
}

missing_packages() {
    for package in $(system_packages); do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
        installed) ;;
        *) have_otherwise "$package" || echo "$package" ;;
        esac
    done
}

# Some packages matter only for one thing that may be there without them.
have_otherwise() {
    case $1 in
    python3-venv) find_python >/dev/null ;;
    *) return 1 ;;
    esac
}

# Prints the first Python of at least 3.11 that can make a virtual environment. The distribution's comes first: it is built
# with profile-guided optimisation, and runs nfparity in three quarters of the time that one built by pyenv takes.
find_python() {
    for candidate in ${PYTHON:-} /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

install_packages() {
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
    say "installing $*"
    apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600"
    $apt update >&2 && $apt install -y --no-install-recommends "$@" >&2
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=$(missing_packages | tr '\n' ' ')
    # shellcheck disable=SC2086  # a list of words
    if [ -n "$missing" ] && ! install_packages $missing; then
        say "cannot install system packages here (neither root nor sudo without a password, or apt failed)"
        say "missing: $missing"
        say "to install them: sudo apt-get install $missing"
        if [ "$level" = vm ]; then exit 3; fi
    fi
else
    say "no apt here: these must be there already, under this distribution's names: $(system_packages | tr '\n' ' ')"
fi

make_venv() {
    stamp=.venv/.made-from
    wanted=$(cat pyproject.toml vm/setup.sh | sha256sum)
    if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then return; fi
    python=$(find_python) || die "no Python of at least 3.11 with venv and ensurepip; install python3-venv"
    say "making .venv with $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')"
    "$python" -m venv --clear .venv || die "cannot make .venv (see above)"
    # Once in silence; when that fails, again with everything pip has to say.
    set -- .venv/bin/python -m pip install --disable-pip-version-check --editable '.[test,check,vm,fleet]'
    "$@" -qq 2>/dev/null || "$@" ||
        die "cannot install the Python packages (see above); where from is your pip's own configuration"
    printf '%s\n' "$wanted" >$stamp
}

# tc programs compile against any kernel's headers, but there must be some. Debian's linux-headers packages depend on
# a compiler, and since Debian 13 on a kernel image; headers unpacked under build/ do as well.
have_headers() {
    ls -d /usr/src/linux-headers-*/include/generated "/lib/modules/$(uname -r)/build/include/generated" \
        build/kernels/*/usr/src/linux-headers-*/include/generated 2>/dev/null | grep -q .
}

# Takes as long as the Python packages, and needs none of them.
unpack_headers() {
    have_headers || "$(find_python)" -m vm --headers || say "no kernel headers: tc programs cannot be compiled"
}

case $level in
run | test) unpack_headers & ;;
esac
make_venv
wait
# A container may lack it. The guest mounts its modules there.
if [ "$level" = vm ] && [ ! -d /lib/modules ]; then
    if [ "$(id -u)" = 0 ]; then mkdir -p /lib/modules; else sudo -n mkdir -p /lib/modules || say "no /lib/modules"; fi
fi
