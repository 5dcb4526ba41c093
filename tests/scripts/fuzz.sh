#!/bin/sh
# make fuzz: runs libFuzzer on each target of tests/fuzz for ten minutes, beginning with the corpus there. Ends with the
# first fault, and prints the bytes that cause it.
#
#   FUZZ_SECONDS    for how long each target runs; 600 unless set
#   FUZZ_TARGETS    which run; all unless set
#   FUZZ_TOOLCHAIN  the nightly compiler, as rustup knows it; nightly unless set
set -eu
cd "$(dirname "$0")/../.."

. tests/scripts/steps.sh

seconds=${FUZZ_SECONDS:-600}
toolchain=${FUZZ_TOOLCHAIN:-nightly}
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
targets=${FUZZ_TARGETS:-$(cd tests/fuzz/targets && ls | sed 's/\.rs$//')}
version=0.13.2

sh tests/scripts/need.sh rust cxx
if ! cargo "+$toolchain" --version >/dev/null 2>&1; then
    echo "the compiler '$toolchain' is missing, and libFuzzer needs a nightly one: rustup toolchain install nightly" >&2
    echo "without one, make test still plays the corpus: cargo test -p switchward-fuzz" >&2
    exit 1
fi
PATH=$target/tools/bin:$PATH
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "cargo-fuzz is missing: building version $version under $target/tools, about a minute"
    cargo install --quiet --locked --version "$version" --root "$target/tools" cargo-fuzz
fi
trap report EXIT

# fuzz COMMAND TARGET ARGUMENT...: runs cargo-fuzz with the folders of this repository.
fuzz() {
    command=$1
    name=$2
    shift 2
    cargo "+$toolchain" fuzz "$command" -O --fuzz-dir tests/fuzz --target-dir "$target/fuzz" "$name" "$@"
}

# What libFuzzer finds beside the corpus stays under target; the next run begins with it.
play() {
    grown=$target/fuzz/corpus/$1
    mkdir -p "$grown" "$target/fuzz/faults/$1"
    fuzz run "$1" "$grown" "tests/fuzz/corpus/$1" -- "-max_total_time=$seconds" -max_len=65536 -timeout=10 \
        -rss_limit_mb=4096 -print_final_stats=1 "-artifact_prefix=$target/fuzz/faults/$1/"
}

for each in $targets; do
    run "build $each (minutes without a cache, because every library is built for libFuzzer)" fuzz build "$each"
done
for each in $targets; do
    run "fuzz $each for $seconds s" play "$each"
done
