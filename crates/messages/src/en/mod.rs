//! English.

pub(crate) mod answering;
pub(crate) mod closed;
pub(crate) mod gates;
pub(crate) mod mails;
pub(crate) mod notices;
pub(crate) mod pages;
pub(crate) mod people;
pub(crate) mod session_warnings;
pub(crate) mod warnings;
