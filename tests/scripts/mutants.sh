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

engine=crates/engine/src
set -- -f "$engine/acts/**/*.rs" -f "$engine/policy/**/*.rs" -f "$engine/moves.rs" -f "$engine/period.rs" \
    -f "$engine/state/ledger.rs" -f "$engine/guards.rs" -f "$engine/faults.rs" -f "$engine/events.rs" -f "$engine/gates.rs" \
    -f "$engine/tasks.rs" -f "$engine/intent.rs" -f "$engine/callees.rs" -f "$engine/remembered.rs" \
    -f "$engine/budget.rs" -f "$engine/reply_token.rs" -f "$engine/votes.rs" -f "$engine/audience.rs" \
    -f "$engine/reminders.rs" -f "$engine/reach.rs" -f "$engine/outgoing.rs"
for command in answer answer_gate assistants authorize cancel classify decide_gate discuss_gate effects end_turn ledger pause post_message raise_cap \
    record_data record_event record_reply report retry_node start sweep switch_run timers work; do
    set -- "$@" -f "$engine/commands/$command.rs"
done
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
