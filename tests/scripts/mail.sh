#!/bin/sh
# Runs approvals by mail over real servers: Postfix, Dovecot, OpenDKIM, unbound and Redis, on high ports of this machine
# and in a temporary folder. SWITCHWARD_BIN is the path of the built server.
set -eu
cd "$(dirname "$0")/../.."

PATH=$PATH:/usr/sbin:/sbin
target=${CARGO_TARGET_DIR:-target}
# The same packages and features as the tests before it, so nothing is built twice.
cargo build --locked --workspace --bins --tests
SWITCHWARD_BIN=$(cd "$target/debug" && pwd)/switchward
export PATH SWITCHWARD_BIN
# Postfix and Dovecot must be started by root; they drop their privileges themselves.
as=
if [ "$(id -u)" != 0 ]; then as="sudo -n --preserve-env=PATH,SWITCHWARD_BIN"; fi
exec $as python3 -B tests/mail/test_mail.py
