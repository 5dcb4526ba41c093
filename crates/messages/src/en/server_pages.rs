//! What the pages of a server say to those who run or develop with it, beside its decision pages: a file for each page.

pub mod guard;
pub mod home;
pub mod inspector;
pub mod mailbox;
pub mod probes;

/// The title of a page of a development server.
#[must_use]
pub fn title(page: &str) -> String {
    format!("{page} · Switchward dev")
}
