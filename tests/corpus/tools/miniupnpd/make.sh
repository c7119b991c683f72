#!/bin/sh
# miniupnpd: a router on which two hosts of its network have asked for forwarded ports.
# Debian packages: miniupnpd-iptables miniupnpc
# LAN_PID is a process in the network namespace behind eth1.
set -eu
cat > /tmp/miniupnpd.conf <<'CONF'
ext_ifname=eth0
ext_ip=8.8.4.4
listening_ip=eth1
http_port=5555
enable_natpmp=yes
enable_upnp=yes
secure_mode=no
uuid=00000000-0000-0000-0000-000000000001
allow 1024-65535 0.0.0.0/0 1024-65535
CONF
update-alternatives --quiet --set iptables /usr/sbin/iptables-legacy
cd /etc/miniupnpd
EXTIF=eth0 sh ./iptables_init.sh
miniupnpd -f /tmp/miniupnpd.conf -d > /var/log/miniupnpd.log 2>&1 &
sleep 3
for mapping in "10.10.0.9 5000 5000 TCP" "10.10.0.9 27015 27015 UDP" "10.10.0.20 443 8443 TCP"; do
    nsenter -t "$LAN_PID" -n upnpc -u http://10.10.0.1:5555/rootDesc.xml -a $mapping
done
