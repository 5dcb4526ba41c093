#!/bin/sh
# make order: plays the seeds of ORDER_SEEDS, from..to, and prints how often each kind of fault and of operation occurred.
# ORDER_COUNTS names a file that keeps the counts of each range. The sum of all ranges in it is printed, so that many seeds
# can be played by several runs. A range that is played again replaces its counts.
set -eu
cd "$(dirname "$0")/../.."

seeds=${ORDER_SEEDS:-0..100000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
counts=${ORDER_COUNTS:-$work/counts}
touch "$counts"

sh tests/scripts/need.sh rust cc
cargo test --locked --release -p switchward-engine --test order --no-run
began=$(date +%s)
{
    ORDER_SEEDS=$seeds cargo test --locked --release -p switchward-engine --test order -- --nocapture seeds:: 2>&1 \
        && : >"$work/passed"
} | tee "$work/output" | grep -v "^counted" || true
took=$(($(date +%s) - began))

grep "^counted" "$work/output" >"$work/new" || true
awk -F '\t' -v range="$seeds" '$2 != range' "$counts" >"$work/kept"
cat "$work/kept" "$work/new" >"$counts"
echo "$seeds took $took seconds; the sum of $(cut -f 2 "$counts" | sort -u | tr '\n' ' '):"
awk -F '\t' '{ sum[$4] += $3 } END { for (kind in sum) printf "%12.0f  %s\n", sum[kind], kind }' "$counts" | sort -k 2
test -e "$work/passed"
