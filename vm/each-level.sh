#!/bin/sh
# Runs a command once per folder of cases and optimisation level. It runs all of them, and ends with the worst status.
# Backends that load the rules unchanged take part at the first level only. A folder whose name ends with -without-tc has
# rules that the tc program refuses, and is for the other backends:
# vm/each-level.sh "FOLDER…" "LEVEL…" BACKEND,… nfparity diff …
folders=$1
levels=$2
all=$3
shift 3
first=${levels%% *}
without() { printf %s "$2" | tr ',' '\n' | grep -v "$1" | paste -sd , -; }
worst=0
for folder in $folders; do
    every=$all
    case $folder in *-without-tc | *-without-tc/) every=$(without '^tc-' "$all") ;; esac
    [ -n "$every" ] || continue
    for level in $levels; do
        backends=$(without '^iptables-' "$every")
        [ "$level" != "$first" ] || backends=$every
        case $backends in "$every" | *nftables* | *tc-ebpf*) ;; *) continue ;; esac
        echo "== $folder -O $level"
        "$@" --corpus "$folder" --backends "$backends" -O "$level"
        status=$?
        # 4 (nothing differed, but not all was tested) is better than 1 (differences)
        case $worst,$status in
            0,* | 4,[!0]*) worst=$status ;;
            *,4) ;;
            *) [ "$status" -le "$worst" ] || worst=$status ;;
        esac
    done
done
exit "$worst"
