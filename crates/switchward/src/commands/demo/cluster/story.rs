//! The demo's state, and the steps that its acts are made of.

use anyhow::Context as _;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_messages::cli::demo_cluster as texts;

use super::callers::{Caller, Callers};
use super::servers::{COUNT, Servers};
use crate::args::Output;
use crate::client::drawn_request_id;
use crate::commands::demo::mail::{LOOK, MAIL_MAX, Mail};
use crate::commands::demo::narrator::Narrator;
use crate::commands::demo::steps::Steps;
use crate::commands::demo::story::{AGENT, BASH, ensure};
use crate::exit::Exit;

/// A step that a server has acknowledged.
pub(super) struct Acknowledged {
    /// The session's sequence after it.
    pub(super) sequence: u64,
    /// The type of its event.
    pub(super) kind: &'static str,
}

/// The story so far.
pub(super) struct ClusterStory {
    pub(super) narrator: Narrator,
    pub(super) steps: Steps,
    pub(super) session: String,
    /// The gate that waits for the person.
    pub(super) gate: String,
    /// The servers that run now.
    pub(super) running: Vec<u64>,
    /// What was acknowledged, in order.
    pub(super) acknowledged: Vec<Acknowledged>,
}

impl ClusterStory {
    /// A story that has not begun.
    pub(super) fn new(output: Output) -> Self {
        Self {
            narrator: Narrator::new(output),
            steps: Steps::default(),
            session: String::new(),
            gate: String::new(),
            running: (1..=COUNT).collect(),
            acknowledged: Vec::new(),
        }
    }

    /// Plays all acts.
    ///
    /// # Errors
    /// A server does not behave as expected.
    pub(super) async fn play(&mut self, servers: &mut Servers) -> Result<(), Exit> {
        let callers = self.form(servers).await?;
        self.start(&callers).await?;
        let (sender, mail) = self.ask(&callers).await?;
        let next = self.first_kill(&callers, servers, sender, &mail).await?;
        self.second_kill(&callers, servers, next).await?;
        self.approve(&callers, servers, sender, &mail).await?;
        self.finish(&callers, servers).await?;
        self.compare(&callers, &mail).await
    }

    /// The last lines, when nothing runs any more.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn end(self) -> Result<Steps, Exit> {
        let Self { narrator, steps, .. } = self;
        narrator.plain("")?;
        narrator.plain(texts::ALL_STOPPED)?;
        narrator.end("switchward dev --servers 3")?;
        Ok(steps)
    }

    /// Notes that a server acknowledged a step, for the comparison with the history.
    pub(super) fn acknowledge(&mut self, kind: &'static str, by: &str, sequence: u64, data: &[(&str, &str)]) {
        self.steps.recorded(kind, by, data);
        self.acknowledged.push(Acknowledged { sequence, kind });
    }

    /// A server that runs and is not this one; the first of those.
    pub(super) fn other_than(&self, server: u64) -> Result<u64, Exit> {
        let other = self.running.iter().copied().find(|one| *one != server);
        Ok(other.context("no other server runs")?)
    }

    /// The decision about a tool call that is made at a server.
    pub(super) async fn authorize(
        &self,
        callers: &Callers,
        server: u64,
        capability: &str,
        args: &str,
    ) -> Result<v1::AuthorizeToolCallResponse, Exit> {
        let request = v1::AuthorizeToolCallRequest {
            session: self.session.clone(),
            capability: capability.to_owned(),
            args: args.as_bytes().to_vec().into(),
            request_id: drawn_request_id(),
            ..v1::AuthorizeToolCallRequest::default()
        };
        callers
            .call(Caller::Agent, server, request, |mut it, request| async move {
                it.policy.authorize_tool_call(request).await
            })
            .await
    }

    /// Makes a call of bash at a server again and again until it is allowed. Returns how long that took, and the calls left.
    pub(super) async fn bash(
        &mut self,
        callers: &Callers,
        server: u64,
    ) -> Result<(Duration, Option<u64>), Exit> {
        let begun = Instant::now();
        let reply = self.authorize(callers, server, BASH, "").await?;
        let took = begun.elapsed();
        ensure!(reply.decision() == v1::ToolDecision::Allow, "a call of bash was not allowed");
        self.acknowledge("policy.allowed", AGENT, reply.sequence, &[("capability", BASH)]);
        Ok((took, reply.remaining.and_then(|left| left.calls)))
    }

    /// The gate, read at a server.
    pub(super) async fn look(&self, callers: &Callers, server: u64) -> Result<v1::Gate, Exit> {
        let request = v1::GetGateRequest { name: self.gate.clone(), ..Default::default() };
        let reply = callers.call(Caller::Person, server, request, |mut it, request| async move {
            it.gates.get_gate(request).await
        });
        Ok(reply.await?.gate.context("the response has no gate")?)
    }

    /// The mails with these words in the mailboxes of the servers that run, each with its server.
    pub(super) async fn mails(&self, callers: &Callers, words: &str) -> Result<Vec<(u64, Mail)>, Exit> {
        let mut found = Vec::new();
        for server in &self.running {
            let all = callers.pages(*server)?.all().await?;
            found
                .extend(all.into_iter().filter(|mail| mail.text.contains(words)).map(|mail| (*server, mail)));
        }
        Ok(found)
    }

    /// Waits for a mail with these words, in any mailbox.
    pub(super) async fn mail(&self, callers: &Callers, words: &str) -> Result<(u64, Mail), Exit> {
        let look = async {
            loop {
                if let Some(found) = self.mails(callers, words).await?.into_iter().next() {
                    return Ok::<_, Exit>(found);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let found = tokio::time::timeout(MAIL_MAX, look).await;
        found.map_err(|_| Exit::failed(anyhow::anyhow!("no mail contains {words:?}")))?
    }

    /// Waits until the cluster has recorded that all mails of the session were delivered.
    pub(super) async fn delivered(&self, callers: &Callers, server: u64) -> Result<(), Exit> {
        let look = async {
            loop {
                let filter =
                    format!("status=\"pending\" AND kind=\"email\" AND session=\"{}\"", self.session);
                let request = v1::ListEffectsRequest { filter, ..Default::default() };
                let reply = callers.call(Caller::Person, server, request, |mut it, request| async move {
                    it.effects.list_effects(request).await
                });
                let reply = reply.await?;
                if reply.effects.is_empty() && reply.unreachable.is_empty() {
                    return Ok::<_, Exit>(());
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let waited = tokio::time::timeout(MAIL_MAX, look).await;
        waited.map_err(|_| Exit::failed(anyhow::anyhow!("the delivery of a mail was not recorded")))?
    }

    /// The whole history, read at a server.
    pub(super) async fn history(
        &self,
        callers: &Callers,
        server: u64,
    ) -> Result<Vec<v1::SessionEvent>, Exit> {
        let request = v1::ListSessionEventsRequest {
            name: self.session.clone(),
            page_size: EVENTS_MAX,
            ..Default::default()
        };
        let page = callers.call(Caller::Person, server, request, |mut it, request| async move {
            it.sessions.list_session_events(request).await
        });
        let page = page.await?;
        ensure!(page.next_page_token.is_empty(), "the history is longer than the demo");
        Ok(page.events)
    }
}

/// The longest history of the demo, events; the most that one page has.
const EVENTS_MAX: u32 = 1_000;
