#!/bin/sh
# make.sh iptables|nftables: firewalld with the backend: two zones, masquerading, a forwarded port and rich rules.
# Debian packages: firewalld dbus
set -eu
# An owned table is one that no other program can change; nft 1.0.6 does not read its flags.
sed -i "s/^FirewallBackend=.*/FirewallBackend=$1/; s/^LogDenied=.*/LogDenied=unicast/
    s/^NftablesTableOwner=.*/NftablesTableOwner=no/" /etc/firewalld/firewalld.conf
mkdir -p /run/dbus
dbus-daemon --system --fork
firewalld --nofork --nopid >/var/log/firewalld.out 2>&1 &
for _ in $(seq 300); do firewall-cmd --state >/dev/null 2>&1 && break; sleep 1; done
firewall-cmd --zone=external --change-interface=eth0
firewall-cmd --zone=internal --change-interface=eth1
firewall-cmd --zone=external --add-service=https
firewall-cmd --zone=external --add-forward-port=port=8443:proto=tcp:toport=443:toaddr=10.10.0.20
firewall-cmd --zone=external --add-icmp-block=timestamp-request
firewall-cmd --zone=internal --add-service=dns
firewall-cmd --zone=internal --add-port=8000-8010/tcp
firewall-cmd --zone=external --add-rich-rule='rule family=ipv4 source address=203.0.113.66 reject'
firewall-cmd --zone=drop --add-source=198.51.100.0/24
firewall-cmd --state
