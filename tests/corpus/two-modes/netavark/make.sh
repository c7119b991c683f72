#!/bin/sh
# make.sh iptables|nftables: netavark, as podman calls it, with the backend: a bridge with two containers and published ports.
# Debian packages: netavark
set -eu
export NETAVARK_FW="$1"
mkdir -p /run/netavark /run/netns
for n in 1 2; do ip netns add c$n; done
published='[{"container_port":80,"host_ip":"","host_port":8080,"protocol":"tcp","range":1},
 {"container_port":5000,"host_ip":"192.0.2.2","host_port":5000,"protocol":"udp","range":3}]'
for n in 1 2; do
    ports=$published
    [ $n = 1 ] || ports='[]'
    cat > /tmp/netavark-$n.json <<JSON
{"container_id": "000000000000000000000000000000000000000000000000000000000000000$n", "container_name": "c$n",
 "port_mappings": $ports,
 "networks": {"podman": {"interface_name": "eth0", "static_ips": ["10.88.0.$((n + 1))", "fd88::$((n + 1))"]}},
 "network_info": {"podman": {"name": "podman", "driver": "bridge", "network_interface": "podman0",
  "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
  "subnets": [{"subnet": "10.88.0.0/16", "gateway": "10.88.0.1"}, {"subnet": "fd88::/64", "gateway": "fd88::1"}],
  "ipv6_enabled": true, "internal": false, "dns_enabled": false, "ipam_options": {"driver": "host-local"}}}}
JSON
    /usr/lib/podman/netavark --config /run/netavark setup /run/netns/c$n < /tmp/netavark-$n.json > /dev/null
done
