#!/bin/sh
# Runs inside the guest as root. $1 is the exchange folder, the only place of the host that is writable here:
#   command  (read)    a shell script: environment, folder and what to run
#   preload  (read)    paths, one a line, whose content is in preload.tar: vm/preload.py says why
#   started  (written) appears when the guest is up
#   output   (written) everything that the command prints, as it prints it
#   status   (written) the command's exit status; appears last, complete
# Files carry the result because virtme-ng's own channel loses exit statuses and cuts output short at power-off.
exchange=$1

# The root file system is the host's, read-only; what programs must write goes to memory.
mkdir -p /run/tmp /run/home
export HOME=/run/home TMPDIR=/run/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
# Modules that iptables, nft and tc do not load by themselves. A kernel may have any of them built in.
for module in tun ip_tables ip6_tables nf_tables sch_ingress cls_bpf; do
    modprobe -q "$module"
done
if [ -s "$exchange/preload" ]; then
    mkdir /run/preload
    mount -t tmpfs -o size=75% preload /run/preload
    # Big blocks: each read is a round trip to the host.
    tar --extract --blocking-factor=1024 --file="$exchange/preload.tar" --directory=/run/preload
    while read -r path; do
        mount --bind "/run/preload$path" "$path"
    done <"$exchange/preload"
fi
ip link set lo up

echo "$(uname -r)" >"$exchange/started"
sh "$exchange/command" >"$exchange/output" 2>&1 </dev/null
echo $? >"$exchange/status.part"
mv "$exchange/status.part" "$exchange/status"
