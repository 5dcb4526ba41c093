//! Compares rendered texts with the files of `expected/`.

use switchward_messages::Piece;

/// An entry of an expected file.
pub(crate) fn entry(name: &str, said: &[&str]) -> String {
    format!("== {name}\n{}\n\n", said.join("\n--\n"))
}

/// Checks that the rendered texts are those of an expected file.
#[track_caller]
pub(crate) fn same(made: &str, expected: &str) {
    assert!(made.trim_end() == expected.trim_end(), "the texts have changed; now they are:\n{made}");
}

/// A sentence with its emphasised words between stars, and its code between back quotes.
pub(crate) fn marked(pieces: &[Piece<'_>]) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Plain(text) => text.to_string(),
        Piece::Strong(text) => format!("*{text}*"),
        Piece::Code(text) => format!("`{text}`"),
    };
    pieces.iter().map(piece).collect()
}
