#!/bin/sh
# Lints proto/ with Buf's standard rules and those for comments, as proto/buf.yaml says; Buf comes as a Python package.
set -eu
cd "$(dirname "$0")/../.."

python=${CARGO_TARGET_DIR:-target}/python
[ -x "$python/bin/python" ] || python3 -m venv "$python"
"$python/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/scripts/lint-proto.txt
exec "$python/bin/buf" lint proto
