//! Approvals: gates, who is asked, votes, settings, mail tokens and decision pages.

pub(crate) mod apply;
pub(crate) mod apply_page_codes;
mod command;
mod event;
mod listed;
mod mail_token;
mod memory;
mod notice;
mod origin_reason;
mod page_code_events;
mod person;
mod quorum;
mod reminders;
mod reply_events;
mod reply_evidence;
mod rows;
mod settings;
mod settled;
mod subject;
mod summary;
mod tally;
mod via;
mod vote_events;
mod warning;

pub use command::ApprovalCommand;
pub use command::{AnswerGate, DecideGate, DiscussGate, EnterPageCode, PageProof, RecordReply, SendPageCode};
pub use event::ApprovalEvent;
pub use listed::Listed;
pub use mail_token::{MAIL_TOKEN_BYTES_MAX, MailKey, MailToken, NoMailToken, SignInPart, TokenUse};
pub use notice::{Closing, Decider, NotCounted, Notice, Progress, Receipt, ReplyOutcome};
pub use origin_reason::OriginReason;
pub use page_code_events::{PageCodeFact, PageCodeStep};
pub(crate) use person::{Persons, mailbox};
pub use quorum::{Quorum, Vote, Voting};
pub use reminders::Reminders;
pub use reply_events::{ReplyFact, SenderProof};
pub use reply_evidence::{CheckedBy, MailCheck, OriginProof, ReplyEvidence};
pub use rows::{
    Bounced, Call, Closed, Gate, GateRequest, Grant, OpenGate, PageCodes, Part, ProposedCall, Reminding,
    Resolution,
};
pub use settings::{GateSettings, OF_DEFINITION, OF_OWNER};
pub use settled::{Setting, SettingSource, Settled};
pub use subject::RequestSubject;
pub use summary::{GateEnd, GateEnding, GateNames, GateSummary, VoteSummary};
pub use tally::Tally;
pub use via::Via;
pub use vote_events::VoteFact;
pub use warning::Warning;
