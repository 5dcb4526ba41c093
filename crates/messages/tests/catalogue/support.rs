//! Compares rendered texts with the files of `expected/`.

/// An entry of an expected file.
pub(crate) fn entry(name: &str, said: &[&str]) -> String {
    format!("== {name}\n{}\n\n", said.join("\n--\n"))
}

/// Checks that the rendered texts are those of an expected file.
#[track_caller]
pub(crate) fn same(made: &str, expected: &str) {
    assert!(made.trim_end() == expected.trim_end(), "the texts have changed; now they are:\n{made}");
}
