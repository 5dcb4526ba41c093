#!/bin/sh
# seeds.sh NAME USUAL COMMAND...: runs a test of many seeds, and adds up what it and earlier runs have counted.
#
# NAME_SEEDS names the seeds, from..to; without it they are USUAL. NAME_COUNTS names a file that keeps the counts of each range:
# the sum of all ranges in it is printed, so that many seeds can be played by several runs, on several machines. A range that has a
# seed of one in the file is refused, because it would count twice; delete the lines of the earlier one to play it again. So is a
# file with a line that is not whole.
#
# The test prints a line for each kind of what it counts: the word `counted`, the range that was played, how often, and the kind,
# with tabs between them. The kind `runs` or `rounds` counts the seeds. The counts are kept also if the test fails, and not if it
# has ended before it had played all seeds of the range that it names.
set -eu
name=$1
usual=$2
shift 2

eval "seeds=\${${name}_SEEDS:-$usual} counts=\${${name}_COUNTS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
counts=${counts:-$work/counts}
touch "$counts"
tab=$(printf '\t')

broken=$(awk -F '\t' 'NF != 4 || $1 != "counted" || $2 !~ /^[0-9]+\.\.[0-9]+$/ || $3 !~ /^[0-9]+$/ || $4 == "" { print NR; exit }' \
    "$counts")
if [ -n "$broken" ] || [ -n "$(tail -c 1 "$counts")" ]; then
    echo "line ${broken:-$(awk 'END { print NR }' "$counts")} of $counts is not whole: delete all lines of its range" >&2
    exit 1
fi

# Prints a range of the file that has one of the seeds of $1.
overlap() {
    awk -F '\t' -v asked="$1" 'BEGIN { split(asked, own, /\.\./) }
        { split($2, other, /\.\./) }
        own[1] + 0 < other[2] + 0 && other[1] + 0 < own[2] + 0 { print $2; exit }' "$counts"
}

again=$(overlap "$seeds")
if [ -n "$again" ]; then
    end=$(awk -F '\t' '{ split($2, range, /\.\./) } range[2] + 0 > end { end = range[2] + 0 } END { print end }' "$counts")
    echo "the seeds $seeds overlap $again in $counts: choose others by ${name}_SEEDS, such as from $end on" >&2
    exit 1
fi

began=$(date +%s)
export "${name}_SEEDS=$seeds"
{
    "$@" 2>&1 && : >"$work/passed"
} | tee "$work/output" | grep --line-buffered -v "^counted$tab" || true
took=$(($(date +%s) - began))

grep "^counted$tab" "$work/output" >"$work/new" || true
if [ ! -s "$work/new" ]; then
    # A test that has failed says itself why.
    [ ! -e "$work/passed" ] || echo "nothing was counted" >&2
    exit 1
fi
played=$(cut -f 2 "$work/new" | head -n 1)
missing=$(awk -F '\t' '$4 == "runs" || $4 == "rounds" { runs += $3 }
    END { split($2, range, /\.\./); print range[2] - range[1] - runs }' "$work/new")
if [ "$missing" != 0 ]; then
    echo "$missing seeds of $played were not played: nothing of this run is counted" >&2
    exit 1
fi
again=$(overlap "$played")
if [ -n "$again" ]; then
    echo "another run has counted $again in $counts meanwhile, which overlaps $played: nothing of this run is counted" >&2
    exit 1
fi
cat "$work/new" >>"$counts"
echo "$played took $took seconds; the sum of $(cut -f 2 "$counts" | sort -u | tr '\n' ' '):"
awk -F '\t' '{ sum[$4] += $3 } END { for (kind in sum) printf "%12.0f  %s\n", sum[kind], kind }' "$counts" | sort -k 2
test -e "$work/passed"
