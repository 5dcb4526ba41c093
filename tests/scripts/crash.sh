#!/bin/sh
# make crash: runs every kill and every power cut, one test after the other, and prints them as they run.
set -eu
cd "$(dirname "$0")/../.."

sh tests/scripts/need.sh rust cc
if cargo nextest --version >/dev/null 2>&1; then
    exec cargo nextest run --locked -p switchward --test crash --no-capture
fi
echo "cargo-nextest is not installed: the same tests run with cargo test"
exec cargo test --locked -p switchward --test crash -- --nocapture --test-threads=1
