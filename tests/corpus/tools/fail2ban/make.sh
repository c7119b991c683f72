#!/bin/sh
# fail2ban: three jails with the three iptables actions, and banned addresses.
# Debian packages: fail2ban ipset
set -eu
mkdir -p /var/run/fail2ban /var/log
touch /var/log/auth.log /var/log/mail.log /var/log/web.log
cat > /etc/fail2ban/jail.local <<'CONF'
[DEFAULT]
backend = polling
[sshd]
enabled = true
port = ssh
logpath = /var/log/auth.log
banaction = iptables-multiport
[postfix]
enabled = true
port = smtp,465,submission
logpath = /var/log/mail.log
banaction = iptables-ipset-proto6
[nginx-http-auth]
enabled = true
logpath = /var/log/web.log
banaction = iptables-allports
CONF
fail2ban-server -b --logtarget /var/log/fail2ban.log start
sleep 5
fail2ban-client set sshd banip 203.0.113.7 203.0.113.9
fail2ban-client set sshd banip 2001:db8::bad
fail2ban-client set postfix banip 198.51.100.23
fail2ban-client set nginx-http-auth banip 198.51.100.77
sleep 3
