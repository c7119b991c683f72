#!/bin/sh
# The CNI plugins bridge, portmap and firewall, as a container runtime calls them, for two containers.
# Debian packages: containernetworking-plugins
set -eu
export CNI_PATH=/usr/lib/cni CNI_COMMAND=ADD CNI_IFNAME=eth0
ipam='"ipam": {"type": "host-local", "subnet": "10.85.0.0/16", "routes": [{"dst": "0.0.0.0/0"}]}'
for n in 1 2; do
    ip netns add c$n
    export CNI_CONTAINERID=container$n CNI_NETNS=/run/netns/c$n
    head='"cniVersion": "0.4.0", "name": "pods"'
    result=$(echo "{$head, \"type\": \"bridge\", \"bridge\": \"cni0\", \"isGateway\": true, \"ipMasq\": true, $ipam}" |
        $CNI_PATH/bridge)
    ports="[{\"hostPort\": $((8080 + n)), \"containerPort\": 80, \"protocol\": \"tcp\"},
     {\"hostPort\": $((5300 + n)), \"containerPort\": 53, \"protocol\": \"udp\", \"hostIP\": \"192.0.2.2\"}]"
    echo "{$head, \"type\": \"portmap\", \"snat\": true, \"capabilities\": {\"portMappings\": true},
     \"runtimeConfig\": {\"portMappings\": $ports}, \"prevResult\": $result}" | $CNI_PATH/portmap > /dev/null
    echo "{$head, \"type\": \"firewall\", \"backend\": \"iptables\", \"prevResult\": $result}" | $CNI_PATH/firewall > /dev/null
done
