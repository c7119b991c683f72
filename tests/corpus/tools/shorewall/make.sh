#!/bin/sh
# shorewall: its example of a firewall with two interfaces, with masquerading, a forwarded port and a limited service.
# Debian packages: shorewall
set -eu
cp /usr/share/doc/shorewall/examples/two-interfaces/* /etc/shorewall/ 2>/dev/null ||
    cp /usr/share/shorewall/configfiles/* /etc/shorewall/
rm -f /etc/shorewall/stoppedrules* /etc/shorewall/params* /etc/shorewall/conntrack*
gunzip -f /etc/shorewall/*.gz 2>/dev/null || true
cat > /etc/shorewall/zones <<'CONF'
fw firewall
net ipv4
loc ipv4
CONF
cat > /etc/shorewall/interfaces <<'CONF'
?FORMAT 2
net eth0 tcpflags,nosmurfs,routefilter,sourceroute=0
loc eth1 tcpflags,nosmurfs,routefilter
CONF
cat > /etc/shorewall/policy <<'CONF'
loc net ACCEPT
$FW all ACCEPT
net all DROP $LOG_LEVEL 8/sec:30
all all REJECT $LOG_LEVEL
CONF
cat > /etc/shorewall/snat <<'CONF'
MASQUERADE 10.10.0.0/24 eth0
CONF
cat > /etc/shorewall/rules <<'CONF'
?SECTION ALL
?SECTION ESTABLISHED
?SECTION RELATED
?SECTION INVALID
?SECTION UNTRACKED
?SECTION NEW
Invalid(DROP) net all tcp
DNS(ACCEPT) loc $FW
SSH(ACCEPT) loc $FW
SSH(ACCEPT) net $FW { rate=s:3/min:5 }
Ping(ACCEPT) loc $FW
Ping(DROP) net $FW
DNAT net loc:10.10.0.20:443 tcp 8443
ACCEPT net $FW udp 51820 - - - - - 
CONF
sed -i 's/^STARTUP_ENABLED=.*/STARTUP_ENABLED=Yes/; s/^CLAMPMSS=.*/CLAMPMSS=Yes/; s/^LOAD_HELPERS_ONLY=.*/LOAD_HELPERS_ONLY=No/' /etc/shorewall/shorewall.conf
shorewall start
