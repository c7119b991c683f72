#!/bin/sh
# Runs a command once per optimisation level, all of them whatever the first says, and ends with the worst status:
# vm/each-level.sh nfparity diff --corpus …
worst=0
for level in 0 1 2; do
    echo "== -O $level"
    "$@" -O "$level"
    status=$?
    [ "$status" -le "$worst" ] || worst=$status
done
exit "$worst"
