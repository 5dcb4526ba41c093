#!/bin/sh
# make api-cluster: runs every test of the API (crates/gateway/tests/api) against three servers, each call at a random
# one, and then through a gateway that holds nothing. Ends with the first pass that fails, and prints its name.
# Arguments go to `cargo nextest run`.
set -eu
cd "$(dirname "$0")/../.."

. tests/scripts/steps.sh
trap report EXIT

# api ARGUMENTS...: runs the tests of the API. All packages are built with all their tests, as by `make test`, so that
# libraries have the same features and nothing is built twice. One more than there are cores: servers wait for each other.
api() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked --workspace --no-fail-fast --test-threads "$(($(nproc) + 1))" \
            -E 'package(switchward-gateway) and binary(api)' "$@"
    else
        cargo test --locked --package switchward-gateway --test api
    fi
}

run "required tools" sh tests/scripts/need.sh rust cc
export SWITCHWARD_TEST_SERVERS=3
run "tests of the API against three servers" api "$@"
unset SWITCHWARD_TEST_SERVERS
export SWITCHWARD_TEST_VIA=gateway
run "tests of the API through a gateway" api "$@"
