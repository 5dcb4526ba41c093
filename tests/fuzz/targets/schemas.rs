//! See `crates/fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    switchward_fuzz::run("schemas", bytes);
});
