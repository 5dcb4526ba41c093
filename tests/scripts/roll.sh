#!/bin/sh
# make roll: replaces the servers of a cluster one by one by those of a newer version while callers go on, and back; then raises
# the cluster's feature level. The newer version is this tree. The older one is
#
# - the commit that ROLL_FROM names;
# - or the newest release, a tag v*;
# - or, as long as nothing is released, what was there before the newest commit that raised the level;
# - or, as long as there is only one level, this tree: the newer version is then another build of this tree, which knows one more
#   level and writes a field that came in with it.
#
# If stored or sent forms have been changed and the level is the same, the old version cannot read what the new one writes: the
# script says so and fails. It compares with the older version, or with the commit that raised the level. `roll.sh check` ends
# after this question, and builds nothing.
set -eu
cd "$(dirname "$0")/../.."

levels=crates/state/src/level.rs

# The forms that are stored or sent between servers: all golden files but those of the public API, which has rules of its own, of
# what the command line prints, and of the engine, which only tests read. One line for each that differs from a commit.
changed() {
    {
        git diff --name-only "$1" -- 'crates/*/golden/*'
        git ls-files --others --exclude-standard -- 'crates/*/golden/*'
    } | grep -v -e '^crates/api/' -e '^crates/scenario/' -e '^crates/engine/' || true
}

# Reads the highest level that a version knows; 1 for a version without levels.
highest() {
    found=$(sed -n 's/^pub const HIGHEST: Level = Level(\([0-9]*\));$/\1/p' | head -n 1)
    echo "${found:-1}"
}

# level COMMIT: the same of a commit.
level() {
    { git show "$1:$levels" 2>/dev/null || true; } | highest
}

# The newest commit that raised the level; HEAD if this tree raises it further.
raised() {
    if [ "$now" -gt "$(level HEAD)" ]; then
        echo HEAD
        return
    fi
    for commit in $(git log --format=%H -G'^pub const HIGHEST' -- "$levels"); do
        if [ "$(level "$commit")" -gt "$(level "$commit^")" ]; then
            echo "$commit"
            return
        fi
    done
}

now=$(highest <"$levels")
release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
from=
since=
if [ -n "${ROLL_FROM:-}" ] || [ -n "$release" ]; then
    from=$(git rev-parse --verify "${ROLL_FROM:-$release}^{commit}")
    since=$from
elif [ "$now" -gt 1 ]; then
    since=$(raised)
    from=$since
    [ "$since" = HEAD ] || from=$since^
fi

if [ -n "$since" ]; then
    before=$(level "$since")
    changed=$(changed "$since")
    if [ -n "$changed" ] && [ "$now" -le "$before" ]; then
        {
            echo "forms have been changed since $(git log -1 --format='%h %s' "$since") without a new feature level:"
            echo "$changed" | sed 's/^/  /'
            echo "$levels says how to add a form"
        } >&2
        exit 1
    fi
fi
if [ -n "$from" ]; then
    echo "from $(git log -1 --format='%h %s' "$from") (level $(level "$from")) to this tree (level $now)"
else
    echo "nothing is released, and there is only level 1: from this tree (level 1) to a build of it that knows level 2"
fi
[ "${1:-}" != check ] || exit 0

sh tests/scripts/need.sh rust cc git
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$(pwd)/$target ;; esac
folder=$target/roll
mkdir -p "$folder"
profile=${PROFILE:-dev}
built=$profile
[ "$profile" != dev ] || built=debug
if [ -n "$from" ]; then
    old=$folder/old
    git worktree prune
    if [ -e "$old/.git" ]; then
        git -C "$old" checkout --quiet --detach "$from"
    else
        git worktree add --quiet --detach "$old" "$from"
    fi
    (cd "$old" && CARGO_TARGET_DIR=$folder/build cargo build --locked --profile "$profile" --bin switchward)
    ROLL_OLD=$folder/build/$built/switchward
    ROLL_LEVEL=$now
    export ROLL_OLD ROLL_LEVEL
else
    cargo build --locked --profile "$profile" -p switchward --bin switchward \
        --features switchward-state/second-level,switchward-engine/level-two
    cp "$target/$built/switchward" "$folder/switchward-2"
    ROLL_NEW=$folder/switchward-2
    ROLL_LEVEL=2
    export ROLL_NEW ROLL_LEVEL
fi
exec cargo test --locked --profile "$profile" -p switchward --test it -- --nocapture cluster::roll
