//! English.

pub(crate) mod closed;
pub(crate) mod gates;
pub(crate) mod mails;
pub(crate) mod notices;
pub(crate) mod people;
pub(crate) mod warnings;
