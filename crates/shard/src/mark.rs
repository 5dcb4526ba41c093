//! Marks: entries of a group's log that change no rows. Each replica takes its rows as they are at a mark.

use bytes::Bytes;

/// Stored form. A mark in the log: this byte, with which no decision begins, then [`VERSION`], a byte for what is taken, and
/// the id.
const FORM: u8 = b'M';
/// The version of the form.
const VERSION: u8 = 1;
const DIGEST: u8 = 1;
const ROWS: u8 = 2;
/// The id of a mark, bytes.
pub(crate) const ID_BYTES: usize = 16;

/// What a replica takes at a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Every replica takes the digest of its rows.
    Digest,
    /// A replica that waits for this mark takes its rows, for a backup.
    Rows,
}

/// An entry of the log at which replicas take their rows or a digest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Tells a mark for a backup from others; zeros if all replicas take their digests.
    pub(crate) id: [u8; ID_BYTES],
    /// What is taken.
    pub(crate) takes: Takes,
}

impl Mark {
    /// The entry's bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let takes = match self.takes {
            Takes::Digest => DIGEST,
            Takes::Rows => ROWS,
        };
        Bytes::from([&[FORM, VERSION, takes][..], &self.id].concat())
    }

    /// Reads an entry; `None` if it is a decision.
    ///
    /// # Errors
    /// It is a mark of another version, or its bytes are broken.
    pub(crate) fn read(entry: &[u8]) -> Option<Result<Self, String>> {
        let rest = entry.strip_prefix(&[FORM])?;
        let mark = match rest {
            [VERSION, takes, id @ ..] => {
                let takes = match *takes {
                    DIGEST => Some(Takes::Digest),
                    ROWS => Some(Takes::Rows),
                    _ => None,
                };
                takes.zip(id.try_into().ok()).map(|(takes, id)| Self { id, takes })
            }
            _ => None,
        };
        Some(mark.ok_or_else(|| "the mark has another form".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_their_form() {
        let id = *b"0123456789abcdef";
        let of = |takes| Mark { id, takes };
        let all = [("digest", of(Takes::Digest)), ("rows", of(Takes::Rows))];
        let line = |(name, mark): &(&str, Mark)| format!("{name} {}\n", mark.encode().escape_ascii());
        let lines: String = all.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/mark.v1.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).unwrap();
        }
        assert_eq!(lines, std::fs::read_to_string(path).unwrap());
        for (_, mark) in all {
            assert_eq!(Mark::read(&mark.encode()), Some(Ok(mark)));
        }
    }

    #[test]
    fn what_is_no_mark_is_a_decision_or_refused() {
        assert_eq!(Mark::read(&[1, 2, 3]), None, "a decision");
        assert_eq!(Mark::read(b""), None);
        let whole = Mark { id: [7; ID_BYTES], takes: Takes::Digest }.encode();
        for wrong in
            [&whole[..1], &whole[..whole.len() - 1], &[&whole[..], &[0]].concat(), b"M\x02\x01", b"M\x01\x09"]
        {
            assert!(Mark::read(wrong).is_some_and(|read| read.is_err()), "{wrong:?}");
        }
    }
}
