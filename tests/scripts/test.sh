#!/bin/sh
# make test: format, lints, repository checks, every test. Ends with the first step that fails, and prints its name.
# A line names each step that is skipped. On two cores without a cache, most of the time is spent on building libraries.
set -eu
cd "$(dirname "$0")/../.."

. tests/scripts/steps.sh
trap report EXIT

# Fewer crashes than `make crash` has, so that the whole stays within its time.
export CRASH_KILLS="${CRASH_KILLS:-40}" CRASH_CUTS="${CRASH_CUTS:-4}" CRASH_RUNS="${CRASH_RUNS:-2}"
export CRASH_FIRST_STARTS="${CRASH_FIRST_STARTS:-4}" CRASH_FULL="${CRASH_FULL:-2}"

run "required tools" sh tests/scripts/need.sh lints cc git curl python redis node mail
run "format" cargo fmt --all --check
run "lints (minutes without a cache, because every library is checked)" \
    cargo clippy --locked --workspace --all-targets -- -D warnings
run "repository checks" cargo xtask check
run "forms and the feature level" sh tests/scripts/roll.sh check
run "licences, bans and sources of libraries" sh tests/scripts/supply.sh
run "what lints and bans must refuse" sh tests/scripts/refused.sh
run "lints of the API" sh tests/scripts/lint-proto.sh
if cargo nextest --version >/dev/null 2>&1; then
    # One more than there are cores: many tests wait for servers, timers and disks.
    run "tests (the longest step without a cache, because every library is built)" \
        cargo nextest run --locked --workspace --no-fail-fast --test-threads "$(($(nproc) + 1))"
else
    echo "cargo-nextest is not installed: cargo test runs the tests, one binary after the other, and plants all bugs"
    run "tests (the longest step without a cache, because every library is built)" \
        cargo test --locked --workspace --lib --bins --tests --no-fail-fast
fi
run "examples in the docs" sh tests/scripts/doc-examples.sh
run "Python client" sh tests/scripts/python-client.sh
run "webhooks beside the reference libraries" sh tests/scripts/webhooks.sh
run "approvals by mail over real servers" sh tests/scripts/mail.sh
