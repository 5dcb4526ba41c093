#!/bin/sh
# make release: builds the server to be shipped. The compiler optimises it by a profile: a build that counts what it does is
# called as the benchmark calls a server, and a second build uses the counts. Prints where the program is.
#
# Code that no call reached is taken for rare, and optimised for its size. Two runs record different counts, so they do not
# make the same program byte for byte; `cargo build --release` has no such input.
set -eu
cd "$(dirname "$0")/../.."

. tests/scripts/steps.sh

# Of each block of calls. The counts of a few seconds already say which code is hot.
seconds=3
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
pgo=$target/pgo
recorded=$pgo/recorded
profile=$pgo/switchward.profdata
started=$(date +%s)
case $target in
    *" "*)
        echo "the path of the target folder has a space, which RUSTFLAGS cannot hold: set CARGO_TARGET_DIR to another one" >&2
        exit 1
        ;;
esac
sh tests/scripts/need.sh rust cc profdata
profdata=$(rustc --print target-libdir)/../bin/llvm-profdata
host=$(rustc -vV | sed -n 's/^host: //p')

finish() {
    report
    if [ "$code" = 0 ]; then
        echo "$target/release-pgo/switchward, also as $target/release/switchward:" \
            "$(($(wc -c <"$target/release-pgo/switchward") / 1000000)) MB, made in $(($(date +%s) - started)) s"
    fi
}
trap finish EXIT

# build FOLDER FLAG ARGUMENT...: builds optimised with one more flag of the compiler, in a folder of its own. With --target it
# holds for the program alone, not for what runs in the build.
#
# Nothing else may differ between the two builds, and no setting of the profile `release`, such as lto: cargo makes the names of
# all functions from it, and the counts of a function are found by its name. RUSTFLAGS replaces `rustflags` of a configuration,
# of which .cargo/config.toml has none.
build() {
    folder=$1
    flags="${RUSTFLAGS:-} $2"
    shift 2
    CARGO_TARGET_DIR=$pgo/$folder RUSTFLAGS=$flags cargo build --locked --release --target "$host" "$@"
}

# What earlier runs have recorded says nothing about this program. The benchmark calls the server by a script, so that only the
# server records: the benchmark and its echo are other programs with the same libraries.
prepare() {
    rm -rf "$recorded" "$pgo/work"
    mkdir -p "$recorded" "$pgo/work"
    cat >"$pgo/work/server" <<SCRIPT
#!/bin/sh
unset LLVM_PROFILE_FILE
exec "$pgo/recording/$host/release/switchward" "\$@"
SCRIPT
    chmod +x "$pgo/work/server"
}

# record ARGUMENT...: runs a part of the benchmark. It ends its servers by SIGTERM, and they write their counts then.
record() {
    LLVM_PROFILE_FILE=/dev/null "$pgo/recording/$host/release/switchward-bench" --server "$pgo/work/server" \
        --dir "$pgo/work" --json "$pgo/work/bench.json" --unjudged "$@"
}

merge() {
    if ! ls "$recorded"/*.profraw >/dev/null 2>&1; then
        echo "the servers have recorded nothing in $recorded" >&2
        exit 1
    fi
    "$profdata" merge -o "$profile" "$recorded"
}

# Everything is compiled again: cargo does not notice that the profile of a library has changed.
build_by_profile() {
    rm -rf "$pgo/optimised/$host"
    build optimised "-Cprofile-use=$profile" --bin switchward
}

# As new files: the name in the folder `release` may be a link to a file of cargo's. The next `cargo build --release` puts its
# own program there.
ship() {
    for folder in release-pgo release; do
        mkdir -p "$target/$folder"
        cp "$pgo/optimised/$host/release/switchward" "$target/$folder/switchward.new"
        mv "$target/$folder/switchward.new" "$target/$folder/switchward"
    done
}

run "build the server that records (minutes without a cache, because every library is built for it)" \
    build recording "-Cprofile-generate=$recorded" --bin switchward --bin switchward-bench
run "prepare to record" prepare
run "record one server" record --rounds 1 --seconds "$seconds"
run "record three servers" record --rounds 1 --seconds "$seconds" --cluster --part rates
if command -v redis-server >/dev/null 2>&1; then
    run "record deliveries" record --delivery
else
    echo "redis-server is not installed: deliveries are not recorded, so their code is not taken for hot"
fi
run "merge what was recorded" merge
run "build the server by the profile (minutes, because every library is built for it)" build_by_profile
run "put the program into its folders" ship
