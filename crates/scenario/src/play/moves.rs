//! Verbs as commands.

use switchward_expr::own_text;
use switchward_machine::{Digest, Micros, SessionId};
use switchward_state::approval::{ApprovalCommand, RecordReply};
use switchward_state::catalogue::Role;
use switchward_state::delivery::{Draft, Outgoing};
use switchward_state::policy::{Args, Authorize, PolicyCommand, RaiseCap, ReportCall, ReportUsage};
use switchward_state::run::{Answer, EndTurn, RecordData, RecordEvent, RunAddress, RunCommand};
use switchward_state::session::{Cancel, Pause, PostMessage, Resume, SessionCommand, SwitchRun};
use switchward_state::{Actor, Body, Command, Reason, Rejection, Reply, RequestId, Scope};

use super::{Moved, Player, Refusal};
use crate::limits::TIME_MS_MAX;
use crate::script::{self, Until, Verb};
use crate::system::Broken;

/// The names of a run's caps, as a caller gives them.
const CAP_USD: &str = "cost_usd";
const CAP_TOKENS: &str = "tokens";

impl Player<'_> {
    /// Plays one step.
    pub(super) fn step(&mut self, verb: &Verb) -> Moved {
        self.published.clear();
        match verb {
            Verb::Answer { state, answer, note } => self.by_agent(RunCommand::Answer(Answer {
                state: state.clone(),
                answer: answer.clone(),
                note: note.clone(),
            })),
            Verb::Message(text) => {
                self.outsider_does(SessionCommand::PostMessage(PostMessage { text: text.clone() }))
            }
            Verb::Turn { text, node } => {
                self.by_agent_at(node.as_ref(), RunCommand::EndTurn(EndTurn { text: text.clone() }))
            }
            Verb::Record(values) => {
                self.by_agent(RunCommand::RecordData(RecordData { values: values.clone() }))
            }
            Verb::Signal => self.by_agent(RunCommand::SignalCompletion),
            Verb::Retry => self.by_agent(RunCommand::RetryNode),
            Verb::Switch(workflow) => {
                self.by_agent(SessionCommand::SwitchRun(SwitchRun { workflow: workflow.clone() }))
            }
            Verb::Event { key, data, state, token } => {
                let (key, data, state) = (key.clone(), data.clone(), state.clone());
                let token = token.as_ref().map(|token| self.reply_token(token));
                let (model, webhook, once) = (true, None, None);
                let event = RecordEvent { key, data, state, model, token, webhook, once };
                self.outsider_does(RunCommand::RecordEvent(event))
            }
            Verb::Email { from, text, authenticated } => self.email(from, text, *authenticated),
            Verb::Authorize(call) => self.authorize(call),
            Verb::SendEmail(draft) => self.send_email(draft),
            Verb::Tool { name, success, cost, tokens, node } => {
                let (call_id, capability) = (None, Some(name.clone()));
                let (success, cost, tokens) = (*success, *cost, *tokens);
                let report = ReportCall { call_id, capability, success, cost, tokens };
                self.by_agent_at(node.as_ref(), PolicyCommand::ReportCall(report))
            }
            Verb::Usage { cost, tokens } => {
                self.by_agent(PolicyCommand::ReportUsage(ReportUsage { cost: *cost, tokens: *tokens }))
            }
            Verb::Work(work) => self.work(work),
            Verb::Gate(verb) => self.at_gate(verb),
            Verb::Start(start) => self.start(start),
            Verb::Wait(until) => self.wait(*until),
            Verb::Undelivered(to) => self.undelivered(to),
            Verb::Publish(named) => self.publish_next(named),
            Verb::Raise { cost, tokens } => self.raise(*cost, *tokens),
            Verb::Resume { reason } => {
                self.by_operator(SessionCommand::Resume(Resume { comment: reason.clone() }))
            }
            Verb::Pause { reason } => {
                self.by_operator(SessionCommand::Pause(Pause { comment: reason.clone() }))
            }
            Verb::Cancel { reason } => {
                self.by_operator(SessionCommand::Cancel(Cancel::written(reason.clone())))
            }
            Verb::Elsewhere(word) => self.elsewhere(word),
        }
    }

    /// A mail comes in.
    fn email(&mut self, from: &str, text: &str, authenticated: bool) -> Moved {
        self.by_operator(ApprovalCommand::RecordReply(RecordReply {
            from: from.to_owned(),
            subject: String::new(),
            text: own_text(text),
            authenticated,
            signed: authenticated,
            pages_only: false,
            brought_by: None,
            vouched: false,
            // If a model may be asked at all, one counts as available.
            model: true,
            token: None,
            evidence: None,
            limits: None,
        }))
    }

    pub(super) fn agent(&self) -> Actor {
        Actor { subject: "agent".into(), role: Role::Agent }
    }

    fn by_agent(&mut self, body: impl Into<Body>) -> Moved {
        let agent = self.agent();
        Ok(self.about_session(agent, body.into())?.map(|_| ()))
    }

    /// The same about the run that stands at this node, or has this name; about the only active one if none is named.
    fn by_agent_at(&mut self, node: Option<&String>, body: impl Into<Body>) -> Moved {
        self.address = node.map(|node| RunAddress { node: Some(node.clone()), ..RunAddress::default() });
        let moved = self.by_agent(body);
        self.address = None;
        moved
    }

    /// The actor that brings external events, which an agent may not; the gates that they open are the agent's
    /// requests.
    pub(super) fn outside(&self) -> Actor {
        Actor { role: Role::Integration, ..self.agent() }
    }

    fn outsider_does(&mut self, body: impl Into<Body>) -> Moved {
        let outside = self.outside();
        Ok(self.about_session(outside, body.into())?.map(|_| ()))
    }

    fn by_operator(&mut self, body: impl Into<Body>) -> Moved {
        let operator = Actor { subject: "operator".into(), role: Role::Operator };
        Ok(self.about_session(operator, body.into())?.map(|_| ()))
    }

    /// A command about the current session of the scenario.
    pub(super) fn about_session(
        &mut self,
        actor: Actor,
        body: Body,
    ) -> Result<Result<Reply, Refusal>, Broken> {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        Ok(self.submit(Scope::Session(id), actor, body)?.map_err(Refusal::from))
    }

    /// Any command of this tenant, under a new request id.
    pub(super) fn submit(
        &mut self,
        scope: Scope,
        actor: Actor,
        body: Body,
    ) -> Result<Result<Reply, Rejection>, Broken> {
        let request = self.request();
        let command = self.command(scope, actor, body, Some(request));
        self.system.submit(command)
    }

    pub(super) fn command(
        &self,
        scope: Scope,
        actor: Actor,
        body: Body,
        request: Option<RequestId>,
    ) -> Command {
        let (tenant, settings) = (self.tenant, self.settings);
        let address = self.address.clone();
        Command {
            tenant,
            scope,
            request,
            expected_sequence: None,
            actor,
            settings,
            trace: None,
            address,
            body,
        }
    }

    pub(super) fn request(&mut self) -> RequestId {
        self.requests += 1;
        let id = format!("request-{}", self.requests);
        let body = Digest::of(id.as_bytes());
        RequestId { id, body }
    }

    fn authorize(&mut self, call: &script::Authorize) -> Moved {
        let args = match Args::parse(&call.args) {
            Ok(args) => args,
            Err(bad) => {
                return Ok(Err(Refusal::new(Reason::FieldInvalid, format!("the arguments {}", bad.0))));
            }
        };
        let node = call.node.clone();
        self.address = node.map(|node| RunAddress { node: Some(node), ..RunAddress::default() });
        let moved = self.asked(Authorize {
            capability: call.capability.clone(),
            args,
            estimate: call.estimate,
            call_id: self.call_id(),
            limits: None,
            mail: None,
        });
        self.address = None;
        moved
    }

    /// Sends a mail, which is a call like any other.
    fn send_email(&mut self, draft: &Draft) -> Moved {
        let called = Outgoing::new(draft.clone()).and_then(|mail| mail.call(self.call_id()));
        match called {
            Ok(call) => self.asked(call),
            Err(bad) => {
                let message = format!("{} {}", bad.field, bad.problem);
                Ok(Err(Refusal::new(Reason::FieldInvalid, message)))
            }
        }
    }

    fn call_id(&self) -> String {
        format!("call-{}", self.requests + 1)
    }

    fn asked(&mut self, call: Authorize) -> Moved {
        let body = PolicyCommand::Authorize(call);
        let agent = self.agent();
        match self.about_session(agent, body.into())? {
            Ok(Reply::Authorized(authorized)) => {
                self.last = Some(*authorized);
                Ok(Ok(()))
            }
            Ok(other) => Err(Broken(format!("a call got the answer {other:?}"))),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Tokens first: if the definition has no such cap, nothing at all is raised.
    fn raise(&mut self, cost: Option<Micros>, tokens: Option<u64>) -> Moved {
        let caps = [(CAP_TOKENS, tokens), (CAP_USD, cost.map(|cost| cost.0))];
        for (param, value) in caps {
            let Some(value) = value else { continue };
            let raise = RaiseCap { param: param.into(), value };
            if let Err(refusal) = self.by_operator(PolicyCommand::RaiseCap(raise))? {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(()))
    }

    fn wait(&mut self, until: Until) -> Moved {
        let now = self.system.now();
        let to = match until {
            Until::Later(ms) => now.after_ms(ms),
            Until::At(at) => at,
        };
        if to < now || to.0 > TIME_MS_MAX {
            let message = "the clock cannot run backwards or beyond the year 9999";
            return Ok(Err(Refusal::new(Reason::FieldInvalid, message)));
        }
        self.system.advance(to)?;
        Ok(Ok(()))
    }

    /// A verb that no machine of this build accepts.
    fn elsewhere(&self, word: &str) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        Ok(Err(self.nothing_takes(id, word)?))
    }

    /// The refusal of a verb that nothing here accepts; after the session's end, that comes first.
    pub(super) fn nothing_takes(&self, id: SessionId, word: &str) -> Result<Refusal, Broken> {
        let status = self.session_view(id)?.map(|view| view.session.status);
        Ok(match status.filter(|status| status.ended()) {
            Some(status) => {
                let message = format!("the session has ended: {}", status.word());
                Refusal::new(Reason::SessionTerminal, message)
            }
            None => Refusal::new(Reason::StateMismatch, format!("`{word}` is not possible here")),
        })
    }
}

pub(super) fn no_session() -> Refusal {
    Refusal::new(Reason::NotFound, "no session has started")
}
