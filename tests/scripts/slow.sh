#!/bin/sh
# make slow: builds all tests and runs them as on a slow machine. First beside busy loops that use most of its cores,
# then with every sync of a file 20 ms slower. Ends with the first pass that fails, and prints its name.
#
# SLOW_BUSY=3 and SLOW_SYNC=1 set the number of passes of each, SLOW_LOOPS=4 the number of loops, SLOW_SYNC_MS=20 the
# delay of a sync. Arguments go to `cargo nextest run`, and only those tests run: slow.sh -p switchward-store
set -eu
cd "$(dirname "$0")/../.."

busy=${SLOW_BUSY:-3}
slow=${SLOW_SYNC:-1}
loops=${SLOW_LOOPS:-4}
SLOW_SYNC_MS=${SLOW_SYNC_MS:-20}
target=${CARGO_TARGET_DIR:-target}
whole=
if [ $# = 0 ]; then
    whole=yes
    set -- --workspace
fi

# As many crashes as `make test` has.
export CRASH_KILLS="${CRASH_KILLS:-40}" CRASH_CUTS="${CRASH_CUTS:-4}" CRASH_RUNS="${CRASH_RUNS:-2}"
export CRASH_FIRST_STARTS="${CRASH_FIRST_STARTS:-4}" CRASH_FULL="${CRASH_FULL:-2}"

. tests/scripts/steps.sh
spinning=

# Starts the busy loops.
spin() {
    left=$loops
    while [ "$left" -gt 0 ]; do
        sh -c 'while :; do :; done' &
        spinning="$spinning $!"
        left=$((left - 1))
    done
}

# Ends the busy loops.
calm() {
    # The list is meant to be split into words.
    # shellcheck disable=SC2086
    [ -z "$spinning" ] || kill $spinning 2>/dev/null || true
    spinning=
}

finish() {
    report
    calm
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# others LABEL [COMMAND...]: runs the tests of `make test` that are not Rust, each through COMMAND.
others() {
    [ -n "$whole" ] || return 0
    label=$1
    shift
    run "Python client $label" "$@" sh tests/scripts/python-client.sh
    run "webhooks beside the reference libraries $label" "$@" sh tests/scripts/webhooks.sh
    run "approvals by mail over real servers $label" "$@" sh tests/scripts/mail.sh
}

# preloaded COMMAND...: runs a command and everything that it starts with slower syncs.
preloaded() {
    LD_PRELOAD=$library SLOW_SYNC_MS=$SLOW_SYNC_MS "$@"
}

run "required tools" sh tests/scripts/need.sh rust cc git python redis node mail
if ! cargo nextest --version >/dev/null 2>&1; then
    echo "cargo-nextest is missing: cargo install cargo-nextest" >&2
    exit 1
fi
run "build the tests" cargo nextest run --locked "$@" --no-run

pass=1
[ "$busy" = 0 ] || spin
while [ "$pass" -le "$busy" ]; do
    beside="beside $loops busy loops, $pass of $busy"
    run "tests $beside" cargo nextest run --locked "$@" --no-fail-fast
    others "$beside"
    pass=$((pass + 1))
done
calm

pass=1
if [ "$slow" != 0 ]; then
    mkdir -p "$target/slow"
    library=$(cd "$target/slow" && pwd)/slow-sync.so
    run "build the slow sync" \
        cc -shared -fPIC -O2 -Wall -Wextra -Werror -o "$library" tests/scripts/slow-sync.c -ldl
fi
while [ "$pass" -le "$slow" ]; do
    slower="with every sync $SLOW_SYNC_MS ms slower, $pass of $slow"
    run "tests $slower" preloaded cargo nextest run --locked "$@" --no-fail-fast
    others "$slower" preloaded
    pass=$((pass + 1))
done
