#!/bin/sh
# shorewall6: a firewall with two interfaces over IPv6.
# Debian packages: shorewall6
set -eu
cat > /etc/shorewall6/zones <<'CONF'
fw firewall
net ipv6
loc ipv6
CONF
cat > /etc/shorewall6/interfaces <<'CONF'
?FORMAT 2
net eth0 tcpflags,sourceroute=0
loc eth1 tcpflags
CONF
cat > /etc/shorewall6/policy <<'CONF'
loc net ACCEPT
$FW all ACCEPT
net all DROP $LOG_LEVEL
all all REJECT $LOG_LEVEL
CONF
cat > /etc/shorewall6/rules <<'CONF'
?SECTION NEW
Invalid(DROP) net all tcp
SSH(ACCEPT) all $FW
Web(ACCEPT) net loc:[2001:db8:10::20]
ACCEPT net $FW ipv6-icmp
CONF
sed -i 's/^STARTUP_ENABLED=.*/STARTUP_ENABLED=Yes/' /etc/shorewall6/shorewall6.conf
shorewall6 start
