//! Mail's forms: what came in is sorted, what goes out is composed.
//!
//! [`incoming`] takes the bytes of a message and what its transport knows, and says what it is: mail of a machine, a
//! bounce, something that cannot be used, or a person's reply with their own words. Asked for one of a reply's tokens, it
//! says how far it is proved that the sender wrote to that address; for that it opens connections to the DNS that it is
//! handed, and to nothing else. [`lmtp`] listens for a mail server that hands messages over, and
//! [`imap`] reads them from a mailbox. [`Signer`] signs what goes out.
//!
//! It must never know what a session or a gate is, what a token means, or what a first line decides.
//!
//! The order, and why it is so:
//!
//! 1. *Limits* before anything is parsed: what is too large costs one look at its length.
//! 2. *Machines and bounces* before anything is believed: they answer every mail, with whatever words.
//! 3. *Form*: what has two readings (two senders, two subjects, a header that is none) is refused and not guessed at.
//! 4. *Tokens* from where the mail was sent to.
//! 5. *Own words*. Where it cannot be told who wrote a word, it is not taken.
//! 6. *Authentication* last, as it alone asks others, and only of a mail whose token its caller knows to be true: the DKIM
//!    and SPF checks and the policy of the sender's domain, or a trusted host's word for it. A stranger cannot make the DNS
//!    be asked.
//!
//! Chosen: a reader of headers of our own beside the parser's, so that what is refused, what is signed and what is read
//! are the same lines. Rejected: to trust that two parsers agree about a message that was made to divide them.

pub mod imap;
pub mod incoming;
pub mod limits;
pub mod lmtp;
mod signer;

pub use signer::{NotSigned, Signer};
