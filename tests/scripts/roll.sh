#!/bin/sh
# make roll: replaces the servers of a cluster one by one by those of this tree while callers go on, and back.
#
# The old version is the commit before the newest change of a stored or sent form, or ROLL_FROM. If forms differ between the
# two and the feature level is the same, the old version cannot read what the new one writes: the script says so and fails.
# `roll.sh check` ends after this question, and builds nothing.
set -eu
cd "$(dirname "$0")/../.."

# The forms that are stored or sent between servers.
golden="crates/expr/tests/golden crates/machine/tests/golden crates/state/tests/golden crates/store/tests/golden
crates/shard/tests/golden crates/peer/tests/golden crates/gateway/tests/golden/query.v1.txt crates/delivery/tests/golden"
levels=crates/state/src/level.rs

# level FILE: the highest level that a version knows; 1 for a version without levels.
level() {
    found=$(sed -n 's/^pub const HIGHEST: Level = Level(\([0-9]*\));$/\1/p' "$1")
    echo "${found:-1}"
}

from=${ROLL_FROM:-}
if [ -z "$from" ]; then
    # shellcheck disable=SC2086
    change=$(git log -1 --format=%H -- $golden)
    if [ -z "$change" ] || ! from=$(git rev-parse --verify --quiet "$change^"); then
        echo "no commit is before the newest change of a form: set ROLL_FROM" >&2
        exit 1
    fi
fi
from=$(git rev-parse --verify "$from^{commit}")
folder=$(pwd)/${CARGO_TARGET_DIR:-target}/roll
case ${CARGO_TARGET_DIR:-} in /*) folder=$CARGO_TARGET_DIR/roll ;; esac
mkdir -p "$folder"
git show "$from:$levels" >"$folder/level.rs" 2>/dev/null || : >"$folder/level.rs"
before=$(level "$folder/level.rs")
now=$(level "$levels")
echo "from $(git log -1 --format='%h %s' "$from") (level $before) to this tree (level $now)"

# shellcheck disable=SC2086
changed=$(git diff --name-only "$from" -- $golden)
if [ -n "$changed" ] && [ "$now" -le "$before" ]; then
    {
        echo "forms have been changed without a new feature level:"
        echo "$changed" | sed 's/^/  /'
        echo "a server of $(git log -1 --format=%h "$from") cannot be in a cluster with one of this tree; $levels says how to add"
        echo "a form. Before the first release this is so whenever a form changes."
    } >&2
    exit 1
fi
[ "${1:-}" != check ] || exit 0

sh tests/scripts/need.sh rust cc git
old=$folder/old
git worktree prune
if [ -e "$old/.git" ]; then
    git -C "$old" checkout --quiet --detach "$from"
else
    git worktree add --quiet --detach "$old" "$from"
fi
profile=${PROFILE:-dev}
built=$profile
[ "$profile" != dev ] || built=debug
(cd "$old" && CARGO_TARGET_DIR=$folder/build cargo build --locked --profile "$profile" --bin switchward)
ROLL_OLD=$folder/build/$built/switchward
export ROLL_OLD
exec cargo test --locked --profile "$profile" -p switchward --test it -- --nocapture cluster::roll
