//! What the messages that go out say: mails to people, and events to webhook endpoints.

mod event_type;
pub(super) mod mail;
pub(super) mod webhook;
