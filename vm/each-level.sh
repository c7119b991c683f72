#!/bin/sh
# Runs a command once per folder of cases and optimisation level, all of them whatever the first says, and ends with
# the worst status:
# vm/each-level.sh "FOLDER…" nfparity diff …
folders=$1
shift
worst=0
for folder in $folders; do
    for level in 0 1 2; do
        echo "== $folder -O $level"
        "$@" --corpus "$folder" -O "$level"
        status=$?
        [ "$status" -le "$worst" ] || worst=$status
    done
done
exit "$worst"
