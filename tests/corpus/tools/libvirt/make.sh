#!/bin/sh
# libvirt: its default network, an isolated one and a routed one.
# Debian packages: libvirt-daemon-system dnsmasq-base
set -eu
mkdir -p /run/dbus
dbus-daemon --system --fork || true
virtlogd -d || true
libvirtd -d
sleep 5
for net in nat:nat:192.168.122 isolated::192.168.123 routed:route:192.168.124; do
    name=${net%%:*} rest=${net#*:}
    mode=${rest%%:*} prefix=${rest#*:}
    forward=
    [ -z "$mode" ] || forward="<forward mode='$mode'/>"
    echo "<network><name>$name</name>$forward<bridge name='vir-$name'/><ip address='$prefix.1' netmask='255.255.255.0'>
<dhcp><range start='$prefix.2' end='$prefix.254'/></dhcp></ip></network>" > /tmp/$name.xml
    virsh -c qemu:///system net-create /tmp/$name.xml || virsh -c network:///system net-create /tmp/$name.xml
done
