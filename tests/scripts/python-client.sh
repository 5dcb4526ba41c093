#!/bin/sh
# Runs the client tests in tests/python against the built server, with a Python of their own under target/.
# They also run the blocks of docs/ that are marked `sh by:python-client`; one of those needs Buf.
# They find the server's program in SWITCHWARD_BIN, and may write generated code to SWITCHWARD_GENERATED.
set -eu
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$target/python/bin/python

# unittest passes if there are no tests at all; here that is an error.
if [ -z "$(find tests/python -name 'test_*.py')" ]; then
    echo "tests/python contains no test_*.py" >&2
    exit 1
fi
[ -x "$python" ] || python3 -m venv "$target/python"
"$python" -m pip install --quiet --disable-pip-version-check \
    -r tests/scripts/python-client.txt -r tests/scripts/lint-proto.txt
# The same packages and features as the tests before it, so nothing is built twice.
cargo build --locked --workspace --bins --tests
mkdir -p "$target/python/generated"
SWITCHWARD_BIN=$(cd "$target/debug" && pwd)/switchward
SWITCHWARD_GENERATED=$(cd "$target/python/generated" && pwd)
export SWITCHWARD_BIN SWITCHWARD_GENERATED
exec "$python" -m unittest discover --verbose --start-directory tests/python --pattern 'test_*.py'
