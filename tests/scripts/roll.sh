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
# after this question, and builds nothing; it is a step of `make test`.
set -eu
cd "$(dirname "$0")/../.."
# A hook of git sets them, and they would hold for the older version's folder, too.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# Git refuses a folder of another user, such as one that is mounted into a container. What is in it is run here anyway.
git() {
    command git -c 'safe.directory=*' "$@"
}

levels=crates/state/src/level.rs

# The forms that are stored or sent between servers: all golden files but those of the public API, which has rules of its own, of
# what the command line prints, and of the engine, which only tests read. One line for each that differs from a commit.
changed() {
    # Each alone: a pipe would hide that git has failed.
    tracked=$(git diff --name-only --no-renames "$1" -- 'crates/*/golden/*')
    others=$(git ls-files --others --exclude-standard -- 'crates/*/golden/*')
    printf '%s\n' "$tracked" "$others" |
        sed -e '/^$/d' -e '\,^crates/api/,d' -e '\,^crates/scenario/,d' -e '\,^crates/engine/,d'
}

# Reads the highest level that a version knows; nothing for a version without levels.
highest() {
    sed -n 's/^pub const HIGHEST: Level = Level(\([0-9]*\));$/\1/p' | head -n 1
}

# level COMMIT: the highest level of a commit; 1 for one without levels.
level() {
    found=$({ git show "$1:$levels" 2>/dev/null || true; } | highest)
    echo "${found:-1}"
}

# The newest commit that raised the level; HEAD if this tree raises it further. The first commit of a history counts as one.
raised() {
    if [ "$now" -gt "$(level HEAD)" ]; then
        git rev-parse HEAD
        return
    fi
    commits=$(git log --format=%H -G'^pub const HIGHEST' -- "$levels")
    for commit in $commits; do
        if [ "$(level "$commit")" -gt "$(level "$commit^")" ]; then
            echo "$commit"
            return
        fi
    done
}

if ! git rev-parse --verify --quiet HEAD >/dev/null; then
    echo "the older version is found by git in a clone of the repository" >&2
    exit 1
fi
now=$(highest <"$levels")
if [ -z "$now" ]; then
    echo "$levels does not say which level is the highest" >&2
    exit 1
fi
release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
from=
since=
if [ -n "${ROLL_FROM:-}" ] || [ -n "$release" ]; then
    from=$(git rev-parse --verify "${ROLL_FROM:-$release}^{commit}")
    since=$from
else
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        echo "this clone is shallow: what was released before it is not compared" >&2
    fi
    if [ "$now" -gt 1 ]; then
        since=$(raised)
        from=$since
        # The version before; empty if it is not in this clone. If this tree raises the level, that is HEAD.
        [ "$(level "$since")" -lt "$now" ] || from=$(git rev-parse --verify --quiet "$since^" || true)
    fi
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
elif [ -n "$since" ]; then
    echo "nothing is released, and the version before level $now is not in this clone"
else
    echo "nothing is released, and there is only level 1: from this tree (level 1) to a build of it that knows level 2"
fi
[ "${1:-}" != check ] || exit 0
if [ -n "$since" ] && [ -z "$from" ]; then
    echo "fetch the whole history, or name the older version by ROLL_FROM" >&2
    exit 1
fi

sh tests/scripts/need.sh rust cc git
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$(pwd)/$target ;; esac
folder=$target/roll
mkdir -p "$folder"
profile=${PROFILE:-dev}
built=$profile
[ "$profile" != dev ] || built=debug
# The test takes this tree's own build for the version that is not named.
unset ROLL_OLD ROLL_NEW
if [ -n "$from" ]; then
    old=$folder/old
    git worktree prune
    # An earlier checkout is used again, so that only what differs is built, unless it belongs to another clone or was changed.
    # Without `.git` the command would be about this tree.
    if [ ! -e "$old/.git" ] || ! git -C "$old" checkout --quiet --detach "$from"; then
        git worktree remove --force "$old" 2>/dev/null || rm -rf "$old"
        git worktree prune
        git worktree add --quiet --detach "$old" "$from"
    fi
    (cd "$old" && CARGO_TARGET_DIR=$folder/build cargo build --locked --profile "$profile" -p switchward --bin switchward)
    ROLL_OLD=$folder/build/$built/switchward
    ROLL_LEVEL=$now
    export ROLL_OLD ROLL_LEVEL
else
    cargo build --locked --profile "$profile" -p switchward --bin switchward \
        --features switchward-state/second-level,switchward-engine/level-two
    # The test builds this tree's own program under the same name.
    cp "$target/$built/switchward" "$folder/switchward-2"
    ROLL_NEW=$folder/switchward-2
    ROLL_LEVEL=2
    export ROLL_NEW ROLL_LEVEL
fi
exec cargo test --locked --profile "$profile" -p switchward --test it -- --nocapture cluster::roll
