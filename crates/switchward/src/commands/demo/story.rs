//! The acts of the demo.

use anyhow::Context as _;
use std::path::Path;
use std::time::Instant;
use switchward_api::v1;
use switchward_gateway::Reason;
use switchward_messages::cli::demo as texts;
use tonic::Status;

use super::narrator::Narrator;
use super::server::{Files, Server};
use super::steps::Steps;
use super::{DEPLOY_GATE, history};
use crate::args::Output;
use crate::client::{Client, drawn_request_id};
use crate::exit::Exit;
use crate::output::{CARE, GOOD, PROBLEM, STRONG, clean, count, period};
use crate::receiver::Receiver;

/// Ends the demo if the server did not behave as expected.
macro_rules! ensure {
    ($holds:expr, $otherwise:expr) => {
        if !$holds {
            return Err(anyhow::Error::msg($otherwise).into());
        }
    };
}
pub(super) use ensure;

pub(super) const AGENT: &str = "agent";
pub(super) const PERSON: &str = "person";
const SERVER: &str = "server";
pub(super) const BASH: &str = "bash";
const DELETE_FILE: &str = "mcp:filesystem:delete_file";
const DELETE_ARGS: &str = r#"{"path":"/srv/releases/41"}"#;
/// What the policy of the deploy gate allows in an hour.
pub(super) const CALLS_MAX: u64 = 50;
const HOUR_SECONDS: i64 = 3_600;
/// Scheduler turns for sending a call before the server is killed.
const SENDING_TURNS: usize = 16;

/// The story so far.
pub(super) struct Story {
    pub(super) narrator: Narrator,
    pub(super) steps: Steps,
    files: Files,
    pub(super) server: Server,
    agent: Client,
    pub(super) person: Client,
    pub(super) session: String,
    /// The gate that waits for a person.
    pub(super) gate: String,
    /// The receiver of webhooks, if an endpoint exists.
    pub(super) receiver: Option<Receiver>,
}

impl Story {
    /// Starts the server.
    pub(super) async fn open(scratch: &Path, data: &Path, output: Output) -> Result<Self, Exit> {
        let narrator = Narrator::new(output);
        narrator.title(texts::TITLE, &texts::INTRODUCTION)?;
        let files = Files::of(scratch, data);
        let server = Server::start(&files).await?;
        let (agent, person) = (server.agent().await?, server.person().await?);
        let (session, gate) = (String::new(), String::new());
        let (steps, receiver) = (Steps::default(), None);
        Ok(Self { narrator, steps, files, server, agent, person, session, gate, receiver })
    }

    /// Deploys a definition and checks that its bytes are unchanged.
    pub(super) async fn deploy(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_DEPLOY)?;
        let file = v1::DefinitionFile { path: "deploy-gate.json".into(), content: DEPLOY_GATE.into() };
        let request = v1::DeployDefinitionRequest {
            files: vec![file],
            request_id: drawn_request_id(),
            ..v1::DeployDefinitionRequest::default()
        };
        let reply = self
            .person
            .call(request, |mut it, request| async move { it.definitions.deploy_definition(request).await });
        let version = reply.await?.version.context("the response has no version")?;
        let request = v1::GetVersionRequest {
            name: version.name.clone(),
            view: v1::VersionView::Source.into(),
            ..Default::default()
        };
        let reply = self
            .person
            .call(request, |mut it, request| async move { it.definitions.get_version(request).await });
        let kept = reply.await?.version.unwrap_or_default().files;
        ensure!(kept.len() == 1 && kept[0].content == DEPLOY_GATE, "the server returned different bytes");
        let bytes = count(DEPLOY_GATE.len(), "byte");
        let outcome = texts::version_stored(version.number, &bytes);
        self.narrator.line(PERSON, texts::DEPLOYS, GOOD, &outcome)?;
        self.narrator.why(&texts::WHY_VERSIONS)
    }

    /// Starts a session, which asks its first question.
    pub(super) async fn start(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_START)?;
        let request = v1::StartSessionRequest {
            definition: "deploy-gate".into(),
            session_id: "release-42".into(),
            request_id: drawn_request_id(),
            ..v1::StartSessionRequest::default()
        };
        let reply = self
            .agent
            .call(request, |mut it, request| async move { it.sessions.start_session(request).await });
        let session = reply.await?.session.context("the response has no session")?;
        let id = session.name.rsplit('/').next().unwrap_or_default().to_owned();
        self.steps.of(&id);
        self.steps.recorded("session.started", AGENT, &[("definition", "deploy-gate")]);
        self.session = id;
        self.narrator.line(AGENT, texts::STARTS_SESSION, STRONG, &position(&session))?;
        self.question(&session)
    }

    /// Makes tool calls up to the limit and beyond.
    pub(super) async fn limit(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_LIMIT)?;
        self.bash_allowed(texts::CALLS_BASH, CALLS_MAX - 1).await?;
        for left in (1..CALLS_MAX - 1).rev() {
            self.bash(left).await?;
        }
        self.bash_allowed(texts::CALLS_BASH_MORE, 0).await?;
        let denied = self.authorize(BASH, "", &drawn_request_id()).await?;
        ensure!(denied.decision() == v1::ToolDecision::Deny, "the 51st call was not denied");
        ensure!(denied.reason == Reason::RateLimited.word(), "the 51st call was denied for another reason");
        self.steps.recorded("policy.denied", AGENT, &[("capability", BASH), ("reason", &denied.reason)]);
        let wait = denied.retry_after.and_then(|after| after.try_into().ok()).map(period).unwrap_or_default();
        let outcome = texts::denied(&denied.reason, &wait);
        self.narrator.line(AGENT, texts::CALLS_BASH_TOO_OFTEN, PROBLEM, &outcome)?;
        self.advance_an_hour().await?;
        self.bash_allowed(texts::CALLS_BASH, CALLS_MAX - 1).await?;
        self.narrator.why(&texts::WHY_DENIED)
    }

    /// Makes a call that opens a gate.
    pub(super) async fn ask(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_ASK)?;
        self.gate = self.asked(texts::ASKS_TO_DELETE).await?;
        self.narrator.detail(&format!("{DELETE_FILE} {DELETE_ARGS}"))?;
        let mine = self.decide(&self.agent, None).await;
        let Err(refused) = mine else {
            return Err(anyhow::anyhow!("the agent approved its own call").into());
        };
        let exit = Exit::from(refused);
        ensure!(
            exit.reason() == Some(Reason::RoleNotAllowed.word()),
            "the agent was refused for another reason"
        );
        self.steps.refused(AGENT, &[("reason", Reason::RoleNotAllowed.word())]);
        let outcome = texts::refused(Reason::RoleNotAllowed.word());
        self.narrator.line(AGENT, texts::APPROVES_OWN_CALL, PROBLEM, &outcome)?;
        self.narrator.why(&texts::WHY_REFUSED)
    }

    /// Kills the server during a call and starts it again; nothing that was acknowledged is lost.
    pub(super) async fn kill(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_KILL)?;
        let request_id = drawn_request_id();
        let answered = self.call_while_killed(&request_id).await?;
        let outcome = if answered { texts::KILLED_AFTER_RESPONSE } else { texts::KILLED_BEFORE_RESPONSE };
        self.narrator.line(SERVER, texts::GETS_KILLED, PROBLEM, outcome)?;
        let begun = Instant::now();
        self.server = Server::start(&self.files).await?;
        (self.agent, self.person) = (self.server.agent().await?, self.server.person().await?);
        let took = texts::ready_after(begun.elapsed().as_secs_f64());
        self.narrator.line(SERVER, texts::RESTARTS, GOOD, &took)?;
        self.bash_as(&request_id).await?;
        self.narrator.line(AGENT, texts::REPEATS_CALL, GOOD, texts::ALLOWED)?;
        self.bash_allowed(texts::CALLS_BASH, CALLS_MAX - 3).await?;
        let gate = self.look().await?;
        ensure!(gate.status() == v1::GateStatus::Open, "the gate is no longer open");
        self.narrator.line(PERSON, texts::CHECKS_GATE, CARE, texts::STILL_OPEN)?;
        self.narrator.why(&texts::WHY_DURABLE)
    }

    /// Kills the server during a call. Returns true if the call got a response nevertheless.
    async fn call_while_killed(&mut self, request_id: &str) -> Result<bool, Exit> {
        let mut policy = self.agent.services().policy;
        let request = self.call(BASH, "", request_id);
        let killed = async {
            // Gives the call time to leave this process.
            for _ in 0..SENDING_TURNS {
                tokio::task::yield_now().await;
            }
            self.server.kill().await
        };
        let (answer, killed) = tokio::join!(policy.authorize_tool_call(request), killed);
        killed?;
        Ok(answer.is_ok())
    }

    /// A person approves one call with these arguments.
    pub(super) async fn approve(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_APPROVE)?;
        let gate = self.look().await?;
        ensure!(gate.args == DELETE_ARGS.as_bytes(), "the gate shows other arguments");
        self.decide(&self.person, Some(gate.args_digest)).await?;
        self.steps.recorded("approval.decided", PERSON, &[("decision", "approve"), ("by", PERSON)]);
        self.narrator.line(PERSON, texts::APPROVES, GOOD, texts::APPROVED)?;
        let granted = self.authorize(DELETE_FILE, DELETE_ARGS, &drawn_request_id()).await?;
        ensure!(
            granted.decision() == v1::ToolDecision::Allow && granted.grant_used,
            "the approval was not used"
        );
        self.steps.recorded("policy.allowed", AGENT, &[("capability", DELETE_FILE)]);
        self.narrator.line(AGENT, texts::MAKES_SAME_CALL, GOOD, texts::APPROVAL_USED)?;
        let first = self.gate.clone();
        self.gate = self.asked(texts::MAKES_CALL_AGAIN).await?;
        ensure!(self.gate != first, "an approval allowed two calls");
        self.narrator.why(&texts::WHY_EXACT)
    }

    /// A question accepts only its answers.
    pub(super) async fn answer(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_ANSWER)?;
        let Err(refused) = self.say("maybe").await else {
            return Err(anyhow::anyhow!("a wrong answer was accepted").into());
        };
        let exit = Exit::from(refused);
        ensure!(
            exit.reason() == Some(Reason::AnswerNotAllowed.word()),
            "a wrong answer was refused for another reason"
        );
        let allowed = exit.allowed();
        ensure!(allowed == ["yes", "no"], "the refusal lists other allowed answers");
        self.steps.refused(AGENT, &[("answer", "maybe"), ("reason", Reason::AnswerNotAllowed.word())]);
        let outcome = texts::answer_refused(Reason::AnswerNotAllowed.word(), &allowed);
        self.narrator.line(AGENT, &texts::answers("maybe"), PROBLEM, &outcome)?;
        for (state, answer) in [("env-check", "yes"), ("migration-check", "n/a"), ("traffic-check", "yes")] {
            let session = self.say(answer).await?;
            self.steps.recorded("session.answered", AGENT, &[("state", state), ("answer", answer)]);
            let ended = session.end_time.is_some();
            let style = if ended { GOOD } else { STRONG };
            self.narrator.line(AGENT, &texts::answers(answer), style, &position(&session))?;
            if ended {
                ensure!(session.status() == v1::SessionStatus::Completed, "the session did not complete");
                self.steps.recorded("session.completed", AGENT, &[]);
            } else {
                self.question(&session)?;
            }
        }
        Ok(())
    }

    /// Prints the recorded history.
    pub(super) async fn history(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_HISTORY)?;
        let (mut events, mut page_token) = (Vec::new(), String::new());
        loop {
            let (name, token) = (self.session.clone(), std::mem::take(&mut page_token));
            let request = v1::ListSessionEventsRequest { name, page_token: token, ..Default::default() };
            let page = self.person.call(request, |mut it, request| async move {
                it.sessions.list_session_events(request).await
            });
            let page = page.await?;
            events.extend(page.events);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        history::lines(&events).iter().try_for_each(|line| self.narrator.plain(line))
    }

    /// Stops the server.
    pub(super) async fn end(mut self) -> Result<Steps, Exit> {
        self.server.kill().await?;
        self.narrator.plain("")?;
        self.narrator.end("switchward dev")?;
        Ok(self.steps)
    }
}

/// The steps of the acts.
impl Story {
    fn call(&self, capability: &str, args: &str, request_id: &str) -> v1::AuthorizeToolCallRequest {
        v1::AuthorizeToolCallRequest {
            session: self.session.clone(),
            capability: capability.to_owned(),
            args: args.as_bytes().to_vec().into(),
            request_id: request_id.to_owned(),
            ..v1::AuthorizeToolCallRequest::default()
        }
    }

    async fn authorize(
        &self,
        capability: &str,
        args: &str,
        request_id: &str,
    ) -> Result<v1::AuthorizeToolCallResponse, Status> {
        let request = self.call(capability, args, request_id);
        self.agent
            .call(request, |mut it, request| async move { it.policy.authorize_tool_call(request).await })
            .await
    }

    /// Makes a call of bash that must be allowed; returns the number of calls left.
    async fn bash_as(&mut self, request_id: &str) -> Result<Option<u64>, Exit> {
        let reply = self.authorize(BASH, "", request_id).await?;
        ensure!(reply.decision() == v1::ToolDecision::Allow, "a call of bash was not allowed");
        self.steps.recorded("policy.allowed", AGENT, &[("capability", BASH)]);
        Ok(reply.remaining.and_then(|left| left.calls))
    }

    /// Makes a call of bash that must be allowed and leave `left` calls.
    async fn bash(&mut self, left: u64) -> Result<(), Exit> {
        let seen = self.bash_as(&drawn_request_id()).await?;
        ensure!(seen == Some(left), format!("a call of bash left {seen:?} calls and not {left}"));
        Ok(())
    }

    async fn bash_allowed(&mut self, did: &str, left: u64) -> Result<(), Exit> {
        self.bash(left).await?;
        self.narrator.line(AGENT, did, GOOD, &texts::calls_left(left))
    }

    /// Makes a call that needs approval; returns its gate.
    async fn asked(&mut self, did: &str) -> Result<String, Exit> {
        self.asked_for(DELETE_FILE, DELETE_ARGS, did).await
    }

    /// The same for any call.
    pub(super) async fn asked_for(
        &mut self,
        capability: &str,
        args: &str,
        did: &str,
    ) -> Result<String, Exit> {
        let reply = self.authorized(capability, args).await?;
        ensure!(reply.decision() == v1::ToolDecision::Ask && !reply.gate.is_empty(), "no gate was opened");
        self.steps.recorded("policy.asked", AGENT, &[("capability", capability)]);
        self.narrator.line(AGENT, did, CARE, texts::PERSON_IS_ASKED)?;
        Ok(reply.gate)
    }

    /// Returns the decision about a call.
    pub(super) async fn authorized(
        &self,
        capability: &str,
        args: &str,
    ) -> Result<v1::AuthorizeToolCallResponse, Exit> {
        Ok(self.authorize(capability, args, &drawn_request_id()).await?)
    }

    pub(super) async fn look(&self) -> Result<v1::Gate, Exit> {
        let request = v1::GetGateRequest { name: self.gate.clone(), ..Default::default() };
        let reply =
            self.person.call(request, |mut it, request| async move { it.gates.get_gate(request).await });
        Ok(reply.await?.gate.context("the response has no gate")?)
    }

    async fn decide(&self, by: &Client, args_digest: Option<String>) -> Result<(), Status> {
        let request = v1::DecideGateRequest {
            name: self.gate.clone(),
            decision: v1::GateDecision::Approve.into(),
            args_digest,
            request_id: drawn_request_id(),
            ..v1::DecideGateRequest::default()
        };
        by.call(request, |mut it, request| async move { it.gates.decide_gate(request).await }).await.map(drop)
    }

    async fn say(&self, answer: &str) -> Result<v1::Session, Status> {
        let request = v1::AnswerCheckpointRequest {
            name: self.session.clone(),
            answer: answer.to_owned(),
            request_id: drawn_request_id(),
            ..v1::AnswerCheckpointRequest::default()
        };
        let reply = self
            .agent
            .call(request, |mut it, request| async move { it.sessions.answer_checkpoint(request).await });
        reply.await.map(|reply| *reply.session.unwrap_or_default())
    }

    async fn advance_an_hour(&self) -> Result<(), Exit> {
        let duration = Some(prost_types::Duration { seconds: HOUR_SECONDS, nanos: 0 });
        let request = v1::AdvanceClockRequest { duration, request_id: drawn_request_id() };
        self.person
            .call(request, |mut it, request| async move { it.clock.advance_clock(request).await })
            .await?;
        self.narrator.line(PERSON, texts::ADVANCES_CLOCK, STRONG, texts::BY_ONE_HOUR)
    }

    fn question(&self, session: &v1::Session) -> Result<(), Exit> {
        let checkpoint = session.checkpoint.clone().unwrap_or_default();
        let answers: Vec<&str> = checkpoint.answers.iter().map(|answer| answer.key.as_str()).collect();
        self.narrator.detail(&clean(&checkpoint.question))?;
        self.narrator.detail(&clean(&answers.join(" | ")))
    }
}

/// The state of a session, in words.
pub(super) fn position(session: &v1::Session) -> String {
    if session.end_time.is_some() { session.status_word.clone() } else { texts::at_states(&session.at) }
}
