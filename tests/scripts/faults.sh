#!/bin/sh
# make faults: sends effects while the server and its Redis are killed, emptied, stopped and disconnected; prints progress.
set -eu
cd "$(dirname "$0")/../.."

sh tests/scripts/need.sh rust cc redis
export FAULTS_SECONDS="${FAULTS_SECONDS:-600}" FAULTS_DOWN_SECONDS="${FAULTS_DOWN_SECONDS:-600}"
# The faults of a cluster have a target of their own: make cluster-faults.
exec cargo test --locked -p switchward --test it -- --nocapture --test-threads=1 --skip cluster_faults "$@"
