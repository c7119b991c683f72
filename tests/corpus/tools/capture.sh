#!/bin/bash
# capture.sh ROOT [TOOL...]: run each tool's make.sh and take the snapshot "node" beside it anew; as root.
# capture.sh ROOT TOOL/iptables...: the same with ../two-modes/TOOL/make.sh iptables, into the snapshot ../two-modes/TOOL/iptables.
# capture.sh ROOT TOOL/nftables...: likewise, into ../two-modes/TOOL/nftables/ruleset.nft, as the root's nft lists the rules (priorities as numbers, because
# nft 1.0.6 takes the name dstnat only in PREROUTING).
#
# ROOT is a Debian root (debootstrap bookworm ROOT, or trixie for ../two-modes) in which the packages that the make.sh name
# are installed. It stays as it is: every tool runs in a layer over it, in namespaces of its own (network, processes, mounts), with eth0 to the
# outside and eth1 to a network behind the node. Nothing leaves these namespaces.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
nfparity=$(cd "$here/../../.." && pwd)/.venv/bin/nfparity

in_namespaces() { # TOOL LAYER: what runs inside
    tool=$1 layer=$2 folder=$here/$1 mode= into=$here/$1/node
    case $tool in */*) mode=${tool#*/} folder=$here/../two-modes/${tool%/*} into=$here/../two-modes/$tool ;; esac
    unshare --net sleep 600 &
    lan=$!
    while [ "$(readlink /proc/$lan/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
    ip link set lo up
    while read -r name four six; do
        ip link add "$name" type veth peer name "$name" netns $lan
        nsenter -t $lan -n ip link set "$name" up
        ip address add "$four" dev "$name"
        ip address add "$six" dev "$name" nodad
        ip link set "$name" up
    done <<'LINKS'
eth0 192.0.2.2/24 2001:db8::2/64
eth1 10.10.0.1/24 2001:db8:10::1/64
LINKS
    nsenter -t $lan -n ip address add 10.10.0.9/24 dev eth1
    ip route add default via 192.0.2.1
    ip -6 route add default via 2001:db8::1
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    mount -t proc proc "$layer/proc"
    mount -t sysfs sys "$layer/sys"
    mount --rbind /sys/fs/cgroup "$layer/sys/fs/cgroup"
    mount --rbind /dev "$layer/dev"
    mount -t tmpfs tmpfs "$layer/run"
    cp "$folder/make.sh" "$layer/tmp/make.sh"
    LAN_PID=$lan chroot "$layer" sh /tmp/make.sh $mode > "$layer/tmp/make.log" 2>&1 ||
        { echo "$tool: make.sh failed:" && tail -20 "$layer/tmp/make.log" && exit 1; } >&2
    rm -rf "$into"
    mkdir "$into"
    if [ "$mode" = nftables ]; then
        chroot "$layer" nft --numeric-priority list ruleset > "$into/ruleset.nft"
    else
        "$nfparity" capture -o "$layer/tmp/node.tar.gz" > /dev/null
        tar -C "$into" --no-same-owner -xzf "$layer/tmp/node.tar.gz"
        rm "$into/meta.json" "$into/nft.json" # the machine, and the same rules as nft shows them
    fi
    chmod 644 "$into"/*
}

if [ "${1-}" = --inside ]; then
    in_namespaces "$2" "$3"
    exit
fi
root=$1
shift
[ $# -gt 0 ] || set -- $(cd "$here" && ls -d */ | tr -d /)
for tool; do
    above=$(mktemp -d)
    mkdir "$above/upper" "$above/work" "$above/layer"
    unshare --net --mount --pid --fork --kill-child --mount-proc sh -c "
        mount -t overlay -o lowerdir='$root',upperdir='$above/upper',workdir='$above/work' overlay '$above/layer' &&
        exec '$here/capture.sh' --inside '$tool' '$above/layer'" || echo "$tool: not captured" >&2
    rm -rf "$above"
    grep -c -e ' -A ' -e '^-A ' "$here/$tool"/node/*save "$here/../two-modes/$tool"/*save 2> /dev/null || true
done
