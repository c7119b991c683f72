"""Public words: names that Kubernetes, netfilter and Linux use on every node."""

from __future__ import annotations

__all__ = [
    "CHAIN_WORDS",
    "COMMENT_WORDS",
    "HASHED_INTERFACES",
    "KEYWORDS",
    "NAMES",
    "NFT_NAMES",
    "PLAIN_INTERFACES",
]

NAMES = frozenset(
    """default kube-system kube-public kube-node-lease kubernetes kube-dns
    http https dns dns-tcp metrics tcp udp sctp""".split()
)
"""Namespaces, services and ports that exist in every cluster."""

CHAIN_WORDS = frozenset(
    """PREROUTING INPUT FORWARD OUTPUT POSTROUTING
    KUBE SVC SVL SEP FW XLB EXT SERVICES NODEPORTS NODE PORT EXTERNAL MARK MASQ DROP FIREWALL PROXY CANARY
    KUBELET IPTABLES HINT LOAD BALANCER SOURCE IP LOCAL CLUSTER RANGE CIDR HEALTH CHECK LOOP BACK TCP UDP SCTP
    RANGES HASH IPVS IPS FILTER IN OUT ROUTER POD NWPLCY DEFAULT HAIRPIN METALLB IPMASQ AGENT NFQUEUE
    DOCKER USER ISOLATION STAGE BRIDGE CT INTERNET CNI HOSTPORT HOSTPORTS SETMARK DN ADMIN FLANNEL
    POSTRTG FWD AWS SNAT CHAIN CONNMARK cali cidr block fw tw fh th from to hep wl dispatch nat
    PRE POST ISTIO INBOUND REDIRECT COMMON CILIUM mangle raw host endpoint LIBVIRT INP PRT UFW
    UP DOWN ACCEPT REJECT RETURN LOG DNAT MASQUERADE ufw before after logging input output forward reject
    track limit user skip policy allow deny not local v6 v4 6""".split()
)
"""Parts (between dashes) of chain names and set names that are the same in all clusters."""

COMMENT_WORDS = frozenset(
    """a accepted access accept active affinity agent all allow also an and any apply are as at attempts
    balancer bigger block blocked by can cannot check chain cilium cluster clusterip clusterips cni
    configured conformance conntrack connections container could dash
    default defined destination destinations dnat drop dropped dst established endpoint endpoints external
    externalip externally failed feeder file filter firewall first flannel flannels for
    forward forwarded forwarding from
    going handle handling has have health hint holds host hostport hostports if in incoming invalid ip ips
    iptables is it json jump
    kube kubelet kubernetes legacy lead load loadbalancer loadbalancersourceranges local localhost loopback
    mark marked martian masquerade masquerading match meta missing must newer nft nftables no node nodeport
    nodeports non not of older on only oifname or other out outgoing packet packets parts pod pods policy port
    portal portals ports prints proxy reject rejected related requiring resolve return route routing rule
    rules save see service services set sets short circuit short-circuit shows snat solve source src stack
    stuff subject table tables tcp that the these this to tool tools
    too traffic udp unmarked update up use used usr via visible vmap when which with without
    aws vpc chain connmark outbound inbound primary eni portfwd policies policy profile profiles accepted
    defaultendpointtohostaction ipinip vxlan encapped originating workloads passed explicitly start unknown
    interface lb solving hairpin purpose hash type sourcerange externaltrafficpolicy localnet egress ingress
    originated cidrs unreachable wireguard ipset ipsets network networks pool pools ipam natoutgoing
    ready probe probes healthcheck""".split()
)
"""Words in comments of Kubernetes' own programs and CNI plugins, and in capture's notes."""

NFT_NAMES = frozenset(
    """kube-proxy nfparity filter nat mangle raw security
    cluster-ips nodeport-ips service-ips service-nodeports no-endpoint-services no-endpoint-nodeports
    firewall-ips hairpin-connections services masquerading mark-for-masquerade reject-chain firewall-check
    cluster-ips-check nodeports-check service-endpoints-check nodeport-endpoints-check
    filter-prerouting filter-prerouting-pre-dnat filter-input filter-input-pre-dnat filter-forward
    filter-forward-pre-dnat filter-output filter-output-pre-dnat filter-output-post-dnat
    nat-prerouting nat-output nat-postrouting
    prerouting input forward output postrouting ingress egress""".split()
)
"""Names of tables, chains and sets that kube-proxy and nfparity create."""

KEYWORDS = frozenset(
    """ip ip6 inet arp bridge netdev tcp udp sctp icmp icmpv6 ipv6-icmp igmp esp ah comp dccp udplite gre ipip
    vlan 8021q th
    new established related invalid untracked original reply expected seen-reply assured confirmed snat dnat
    dying fixed-timeout
    unicast local broadcast anycast multicast blackhole unreachable prohibit throw nat xresolve host other
    fin syn rst psh ack urg ecn cwr
    echo-request echo-reply destination-unreachable packet-too-big time-exceeded parameter-problem redirect
    source-quench router-advertisement router-solicitation timestamp-request timestamp-reply info-request
    info-reply address-mask-request address-mask-reply mld-listener-query mld-listener-report
    mld-listener-done mld-listener-reduction nd-router-solicit nd-router-advert nd-neighbor-solicit
    nd-neighbor-advert
    nd-redirect mld2-listener-report ind-neighbor-solicit ind-neighbor-advert router-renumbering
    port-unreachable host-unreachable net-unreachable prot-unreachable net-prohibited host-prohibited
    admin-prohibited no-route addr-unreachable policy-fail reject-route
    icmp-port-unreachable icmp-host-unreachable icmp-net-unreachable icmp-proto-unreachable
    icmp-net-prohibited icmp-host-prohibited icmp-admin-prohibited tcp-reset icmp6-no-route
    icmp6-adm-prohibited icmp6-addr-unreachable icmp6-port-unreachable icmp6-policy-fail
    icmp6-reject-route any all
    second minute hour day week bytes kbytes mbytes packets inc random nth src dst srcip dstip srcport dstport
    accept drop continue return queue jump goto exists missing fully-random persistent dynamic timeout
    constant     interval true false yes no emerg alert crit err warn warning notice info debug audit
    loose validmark accept-local in out none ipsec strict tunnel transport cosmos""".split()
)
"""Values of matches and statements, as iptables and nft print them."""

PLAIN_INTERFACES = (
    *(
        "lo",
        "eth",
        "ens",
        "enp",
        "eno",
        "em",
        "bond",
        "team",
        "br",
        "docker",
        "cni",
        "flannel",
        "tunl",
        "vxlan",
    ),
    *(
        "kube-ipvs",
        "kube-bridge",
        "kube-dummy-if",
        "nodelocaldns",
        "dummy",
        "wlan",
        "ppp",
        "tun",
        "tap",
        "wg",
    ),
    *(
        "virbr",
        "vlan",
        "weave",
        "sit",
        "gre",
        "ip6tnl",
        "ip6gre",
        "ip_vti",
        "ifb",
        "pod",
        "pods",
        "cilium_host",
    ),
    *(
        "cilium_net",
        "cilium_vxlan",
        "antrea-gw",
        "genev_sys_",
        "ovn-k8s-mp",
        "cbr",
        "mynet",
        "lxdbr",
        "lxcbr",
    ),
)
"""Common prefixes of interface names; a number after one is public, too."""

HASHED_INTERFACES = ("cali", "veth", "lxc", "azv", "gke", "eni", "vnet", "br-", "enx", "vif", "nic", "lxc_")
"""Prefixes of interface names that continue with a hash or id of a pod, a network or a hardware address."""
