#!/bin/sh
# Runs the examples in the docs. A crate that has none says `doctest = false` in its manifest, because rustdoc would read
# all of its sources to find none. Fails if such a crate has an example: then that line has to go.
set -eu
cd "$(dirname "$0")/../.."

# Each file with a block that says no other language than Rust, and the line where the block begins.
examples='
    FNR == 1 { inside = 0 }
    /^ *\/\/[\/!] *```/ {
        inside = !inside
        sub(/.*```/, "")
        if (inside && $0 !~ /^(http|json|proto|sh|text|toml|yaml)/) print FILENAME ":" FNR
    }
'
without=$(grep -l '^doctest = false$' crates/*/Cargo.toml | sed 's|Cargo.toml$|src|')
# shellcheck disable=SC2086
found=$(find $without -name '*.rs' -exec awk "$examples" {} +)
if [ -n "$found" ]; then
    echo "examples of crates whose manifests say doctest = false:" >&2
    echo "$found" >&2
    exit 1
fi
exec cargo test --locked --workspace --doc
