#!/bin/sh
# make.sh iptables|nftables: libvirt with the backend: its default network, an isolated one and a routed one.
# Debian packages: libvirt-daemon-system libvirt-clients dnsmasq-base
set -eu
echo "firewall_backend = \"$1\"" >> /etc/libvirt/network.conf
# With nftables, libvirt has tc compute the checksums of DHCP, for which a kernel may lack act_csum. No rule depends on it.
mv "$(command -v tc)" /usr/local/bin/tc-of-debian
printf '#!/bin/sh\ncase "$*" in *csum*) exit 0 ;; esac\nexec tc-of-debian "$@"\n' > /usr/sbin/tc
chmod 755 /usr/sbin/tc
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
