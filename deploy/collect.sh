#!/bin/sh
# Fetches the snapshots that deploy/capture.yaml has captured: deploy/collect.sh FOLDER
#
# Writes FOLDER/NODE.tar.gz for each node, and a line for each node without a snapshot (exit status 1). Fetched files
# stay, so that it can be run again. KUBECTL names another kubectl, or one with options.
set -eu

folder=${1:?usage: deploy/collect.sh FOLDER}
kubectl=${KUBECTL:-kubectl}
space=nfparity-capture
failed=0

umask 077
mkdir -p "$folder"
# Nodes that are down never become ready; the others are fetched anyway.
# shellcheck disable=SC2086  # kubectl may have options
$kubectl -n $space rollout status daemonset/$space --timeout="${TIMEOUT:-300s}" >&2 ||
    printf 'collect: not every pod is ready\n' >&2

# shellcheck disable=SC2086
pods=$($kubectl -n $space get pods -l app=$space \
    -o 'jsonpath={range .items[*]}{.metadata.name}/{.spec.nodeName}{"\n"}{end}')

for one in $pods; do
    pod=${one%%/*}
    node=${one#*/}
    target=$folder/$node.tar.gz
    if [ -e "$target" ]; then continue; fi
    # shellcheck disable=SC2086
    if $kubectl -n $space exec "$pod" -c keep -- cat /capture/node.tar.gz >"$target.part" && gzip -t "$target.part"; then
        mv "$target.part" "$target"
        printf '%s\n' "$target"
    else
        rm -f "$target.part"
        printf 'collect: %s: no snapshot; kubectl -n %s logs %s -c capture says why\n' "$node" $space "$pod" >&2
        failed=1
    fi
done
exit $failed
