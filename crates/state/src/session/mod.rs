//! Sessions: their rows, how they start, what is said in them, and how their data ends.

pub(crate) mod apply;
pub(crate) mod apply_removal;
mod command;
mod event;
mod event_source;
mod position;
mod redact;
pub(crate) mod remember;
mod removal;
mod removal_commands;
mod removal_events;
mod replies;
mod reply_token;
mod rows;
mod session_tokens;
mod speaker;
mod start;
mod stored_reply;
mod warning;

pub use command::{Cancel, Pause, PostMessage, Resume, SessionCommand, Sweep, SwitchRun};
pub use event::SessionEvent;
pub use event_source::EventSource;
pub(crate) use event_source::REPLY_TOKEN;
pub use position::{GatePosition, ItemPosition, Listening, Loaded, Position, RunPosition};
pub use redact::{decided, is_redacted, redacted};
pub use removal::{KeptDecision, Removal, Removed, Removing, Retention, RetentionRule};
pub use removal_commands::{Expiring, Remove, RemoveStep};
pub use removal_events::RemovalFact;
pub use replies::{Chained, Remembered, Replies, Reserve};
pub use reply_token::{NoReplyToken, ReplyMark, ReplyToken, ReplyTokens};
pub(crate) use rows::FIRST_ID;
pub use rows::{Assisted, Attached, Early, MailDay, Meters, Said, Session};
pub use speaker::Speaker;
pub use start::{Queued, Start};
pub use stored_reply::{NextReply, ReplySource, StoredReply};
pub use warning::{GateTrouble, NoAudience, SessionWarning};
