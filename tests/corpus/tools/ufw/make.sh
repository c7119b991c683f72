#!/bin/sh
# ufw: a router that lets the network behind it out, with limited ssh and a forwarded port.
# Debian packages: ufw
set -eu
sed -i 's/^IPT_MODULES=.*/IPT_MODULES=""/' /etc/default/ufw
sed -i 's/^DEFAULT_FORWARD_POLICY=.*/DEFAULT_FORWARD_POLICY="DROP"/' /etc/default/ufw
cat >> /etc/ufw/before.rules <<'RULES'
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i eth0 -p tcp --dport 8443 -j DNAT --to-destination 10.10.0.20:443
-A POSTROUTING -s 10.10.0.0/24 -o eth0 -j MASQUERADE
COMMIT
RULES
ufw default deny incoming
ufw default allow outgoing
ufw logging medium
ufw limit ssh/tcp
ufw allow 80,443/tcp comment 'web'
ufw allow proto tcp from 10.10.0.0/24 to any port 5432
ufw allow in on eth1 to any port 53
ufw deny from 203.0.113.66
ufw reject out 25/tcp
ufw allow log-all 8080/tcp
ufw route allow in on eth1 out on eth0
ufw route allow in on eth0 out on eth1 to 10.10.0.20 port 443 proto tcp
ufw --force enable
