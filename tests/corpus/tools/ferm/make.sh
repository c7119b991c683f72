#!/bin/sh
# ferm: a host with a forwarded port, rate limits and lists of recent addresses, for both families.
# Debian packages: ferm
set -eu
cat > /etc/ferm/ferm.conf <<'CONF'
@def $WAN = eth0;
@def $LAN = eth1;
@def &ALLOWED($proto, $ports) = {
    domain (ip ip6) table filter chain INPUT protocol $proto mod multiport destination-ports $ports ACCEPT;
}
domain (ip ip6) table filter {
    chain INPUT {
        policy DROP;
        mod state state INVALID DROP;
        mod state state (ESTABLISHED RELATED) ACCEPT;
        interface lo ACCEPT;
        protocol tcp dport ssh mod state state NEW {
            mod recent name SSH set NOP;
            mod recent name SSH update seconds 60 hitcount 4 DROP;
            ACCEPT;
        }
        interface $LAN protocol (tcp udp) dport domain ACCEPT;
    }
    chain OUTPUT policy ACCEPT;
    chain FORWARD {
        policy DROP;
        mod state state INVALID DROP;
        mod state state (ESTABLISHED RELATED) ACCEPT;
        interface $LAN outerface $WAN ACCEPT;
        mod limit limit 3/min limit-burst 10 LOG log-prefix "forward: ";
    }
}
&ALLOWED(tcp, (http https));
&ALLOWED(udp, (443 51820));
domain ip {
    table filter chain INPUT protocol icmp icmp-type echo-request mod limit limit 5/s ACCEPT;
    table filter chain FORWARD interface $WAN daddr 10.10.0.20 protocol tcp dport (80 8080) ACCEPT;
    table nat {
        chain PREROUTING interface $WAN protocol tcp dport 8080 DNAT to 10.10.0.20:80;
        chain POSTROUTING outerface $WAN saddr 10.10.0.0/24 SNAT to 192.0.2.2;
    }
    table mangle chain FORWARD protocol tcp tcp-flags (SYN RST) SYN TCPMSS clamp-mss-to-pmtu;
}
domain ip6 table filter chain (INPUT FORWARD) protocol ipv6-icmp ACCEPT;
CONF
ferm /etc/ferm/ferm.conf
