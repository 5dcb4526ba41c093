//! What is said in a conversation, and what comes by mail.

use super::{PublicEvent, number};
use crate::Flow;
use crate::event::{ReplyFact, SenderProof, Speaker, Standing};

/// Somebody said something; what an agent relays is marked.
pub(super) fn posted(text: &str, speaker: Speaker) -> PublicEvent {
    let public = PublicEvent::new("message.posted");
    match speaker {
        Speaker::Agent => public.with("from", "agent"),
        Speaker::User => public.with("from", "user"),
        Speaker::Relayed => public.with("from", "user").with("relayed_by", "agent"),
    }
    .with("text", text)
}

/// What came by mail, and to whom it was answered.
pub(super) fn replied(flow: &Flow) -> Option<PublicEvent> {
    if let Flow::ReplyRecorded(ReplyFact { from, text, proof, about, evidence, why, brought_by, .. }) = flow {
        let public = PublicEvent::new("reply.recorded").with("from", from).with("text", text);
        let public = public.with("authenticated", *proof == SenderProof::Mail).with("evidence", evidence);
        let public = public.with("vouched_by", proof.vouched_by());
        let public = public.with("brought_by", brought_by.as_deref().unwrap_or_default());
        let public = public.with("about", about.as_ref().map(number).unwrap_or_default());
        Some(public.with("why", why.map(Standing::word).unwrap_or_default()))
    } else if let Flow::ReplyAnswered { gate, to, run } = flow {
        let gate = if run.is_some() { String::new() } else { number(gate) };
        Some(PublicEvent::new("reply.answered").with("gate", gate).with("to", to))
    } else {
        None
    }
}
