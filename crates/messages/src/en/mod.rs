//! English.

pub(crate) mod answering;
pub(crate) mod closed;
pub mod command_line;
pub(crate) mod deliveries;
pub(crate) mod delivery_details;
pub(crate) mod directory;
pub(crate) mod evidence;
pub(crate) mod faults;
pub(crate) mod gate_lines;
pub(crate) mod gates;
pub(crate) mod mails;
pub(crate) mod notices;
pub(crate) mod pages;
pub(crate) mod people;
pub(crate) mod policy;
pub(crate) mod public_events;
pub(crate) mod refusals;
pub mod server_pages;
pub(crate) mod session_comments;
pub(crate) mod session_warnings;
pub(crate) mod warnings;
