#!/bin/sh
# Tests our webhooks against the reference libraries of Standard Webhooks in Python and Node. Their packages are under
# target/. WEBHOOK_LINES is the path of our example program, which they call.
set -eu
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$target/python/bin/python

[ -x "$python" ] || python3 -m venv "$target/python"
"$python" -m pip install --quiet --disable-pip-version-check -r tests/webhooks/requirements.txt
mkdir -p "$target/node"
cp tests/webhooks/package.json "$target/node/package.json"
npm install --prefix "$target/node" --no-package-lock --no-audit --no-fund --silent

# The same packages and features as the tests before it, so nothing is built twice.
cargo build --locked --workspace --bins --tests --example webhook-lines
WEBHOOK_LINES=$(cd "$target/debug/examples" && pwd)/webhook-lines
NODE_PATH=$(cd "$target/node/node_modules" && pwd)
export WEBHOOK_LINES NODE_PATH
"$python" tests/webhooks/reference.py
node --test --test-reporter=spec tests/webhooks/reference.cjs
