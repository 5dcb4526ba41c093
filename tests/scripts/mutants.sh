#!/bin/sh
# make mutants: makes one small change after another to the engine's acts and guards, and runs only the scenarios on
# each. A change that no scenario notices is a rule without a scenario; at least 90 of 100 changes must be noticed.
#
# MUTANTS_SHARD=0/6 tries only every sixth change.
set -eu
cd "$(dirname "$0")/../.."

version=27.1.0
least=90
build=${CARGO_TARGET_DIR:-$PWD/target}
tools=$build/tools
out=$build/mutants
PATH=$tools/bin:$PATH
export PATH

if ! cargo mutants --version >/dev/null 2>&1; then
    echo "cargo-mutants is missing: building version $version under $tools"
    cargo install --locked --root "$tools" --version "$version" cargo-mutants
fi

# What decides, without the catalogue, the views and the public events, which the scenarios hardly use.
engine=crates/engine/src
set -- -f "$engine/acts/**/*.rs" -f "$engine/policy/**/*.rs" -f "$engine/approval/**/*.rs" -f "$engine/run/**/*.rs" \
    -f "$engine/session/**/*.rs" -f "$engine/work/**/*.rs" -f "$engine/delivery/messages.rs" \
    -f "$engine/delivery/capacity.rs" -f "$engine/delivery/effects.rs" -f "$engine/driver.rs" -f "$engine/budget.rs" \
    -f "$engine/remembered.rs" -f "$engine/catalogue/assistants.rs" -f crates/state/src/policy/period.rs \
    -f crates/state/src/policy/ledger.rs -f crates/state/src/delivery/outgoing.rs -e '**/public.rs'
if [ -n "${MUTANTS_SHARD:-}" ]; then
    set -- "$@" --sharding round-robin --shard "$MUTANTS_SHARD"
fi

echo "running the scenarios on the unchanged engine:"
cargo test --locked -q -p switchward-scenario --test corpus

# A copy of the tree is changed, not the tree. What is missed ends cargo mutants with 2.
export CARGO_PROFILE_DEV_DEBUG=false RUST_BACKTRACE=0
rm -rf "$out"
mkdir -p "$out"
code=0
CARGO_TARGET_DIR=$out/build cargo mutants "$@" --test-package switchward-scenario --baseline skip --timeout 180 \
    --no-shuffle --colors never -o "$out" -- --locked --test corpus || code=$?
case $code in
    0 | 2 | 3) ;;
    *) exit "$code" ;;
esac

count() { wc -l <"$out/mutants.out/$1.txt"; }
caught=$(($(count caught) + $(count timeout)))
viable=$((caught + $(count missed)))
if [ "$viable" = 0 ]; then
    echo "no change was tested" >&2
    exit 1
fi
tenths=$((caught * 1000 / viable))
echo
echo "missed:"
sed 's/^/  /' "$out/mutants.out/missed.txt"
echo "$((viable + $(count unviable))) changes, $viable of them compile, $caught noticed by the scenarios:" \
    "$((tenths / 10)).$((tenths % 10)) of 100, at least $least are required"
[ "$tenths" -ge $((least * 10)) ]
