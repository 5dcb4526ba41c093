//! Mail: sorts inbound messages, and signs outbound ones.
//!
//! [`incoming`] takes the bytes of a message and what its transport knows, and says what it is: mail of a machine, a bounce,
//! something that cannot be used, or a person's reply with their own words. For one of a reply's tokens, it checks how far
//! it is proved that the sender wrote to that address; for that it connects only to the DNS resolver that it is given.
//! [`lmtp`] listens for a mail server that hands messages over, and [`imap`] reads them from a mailbox. [`Signer`] signs
//! outbound mail.
//!
//! It must never know what a session or a gate is, what a token means, or what a first line decides.
//!
//! The order, and why it is so:
//!
//! 1. *Limits* before anything is parsed: an oversized message costs only a check of its length.
//! 2. *Machines and bounces* before anything is believed: they answer every mail, with any words.
//! 3. *Form*: an ambiguous message (two senders, two subjects, an invalid header) is refused, without guessing.
//! 4. *Tokens* from the addresses that the mail was sent to.
//! 5. *Own words*. A word is not taken if it is unclear who wrote it.
//! 6. *Authentication* last, as it alone queries others, and only for a mail whose token the caller knows to be valid: the
//!    DKIM and SPF checks and the policy of the sender's domain, or a trusted host's results. A stranger cannot cause DNS
//!    queries.
//!
//! Chosen: our own header reader beside the parser's, so that the same lines are refused, signed and read. Rejected: to
//! trust that two parsers agree about a message that was crafted to divide them.

pub mod imap;
pub mod incoming;
pub mod limits;
pub mod lmtp;
mod signer;

pub use signer::{NotSigned, Signer};
