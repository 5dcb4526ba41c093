//! The acts of the demo.

use anyhow::Context as _;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_messages::cli::demo::{self, DECISION_RECORDED, ready_after};
use switchward_messages::cli::demo_cluster as texts;
use switchward_messages::cli::demo_cluster::server as named;

use super::callers::{Caller, Callers};
use super::servers::{COUNT, Servers};
use super::story::ClusterStory;
use crate::client::drawn_request_id;
use crate::commands::demo::mail::{MAIL, MAIL_MAX, Mail, WHO, WRITE_ARGS, WRITE_FILE, Writer};
use crate::commands::demo::story::{AGENT, CALLS_MAX, PERSON, ensure, position};
use crate::commands::demo::{DEPLOY_GATE, history};
use crate::exit::Exit;
use crate::output::{CARE, GOOD, PROBLEM, STRONG, count};

/// The pause before a reply is sent again that was not accepted yet.
const REPLY_AGAIN: Duration = Duration::from_millis(500);

impl ClusterStory {
    /// Three servers form a cluster.
    pub(super) async fn form(&mut self, servers: &mut Servers) -> Result<Callers, Exit> {
        self.narrator.title(texts::TITLE, &texts::INTRODUCTION)?;
        self.narrator.act(texts::ACT_FORM)?;
        for server in 1..=COUNT {
            let begun = Instant::now();
            servers.server_ready(server).await?;
            let did = if server == 1 { texts::STARTS } else { texts::STARTS_AND_JOINS };
            let outcome = ready_after(begun.elapsed().as_secs_f64());
            self.narrator.line(&named(server), did, GOOD, &outcome)?;
        }
        let callers = Callers::connect(&servers.all_ready().await?).await?;
        callers.all_vote(1).await?;
        self.narrator.line("cluster", texts::NEEDS_TWO_SERVERS, STRONG, texts::ALL_VOTE)?;
        Ok(callers)
    }

    /// A session starts at one server, and another one leads it.
    pub(super) async fn start(&mut self, callers: &Callers) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_START)?;
        let file = v1::DefinitionFile { path: "deploy-gate.json".into(), content: DEPLOY_GATE.into() };
        let request = v1::DeployDefinitionRequest {
            files: vec![file],
            request_id: drawn_request_id(),
            ..v1::DeployDefinitionRequest::default()
        };
        let reply = callers.call(Caller::Person, 1, request, |mut it, request| async move {
            it.definitions.deploy_definition(request).await
        });
        let version = reply.await?.version.context("the response has no version")?;
        let outcome = texts::version_active(version.number);
        self.narrator.line(PERSON, texts::DEPLOYS, GOOD, &outcome)?;
        let leader = callers.leader_but(0, 1).await?;
        let server = self.other_than(leader)?;
        let request = v1::StartSessionRequest {
            definition: "deploy-gate".into(),
            session_id: "release-42".into(),
            request_id: drawn_request_id(),
            ..v1::StartSessionRequest::default()
        };
        let reply = callers.call(Caller::Agent, server, request, |mut it, request| async move {
            it.sessions.start_session(request).await
        });
        let session = reply.await?.session.context("the response has no session")?;
        session.name.rsplit('/').next().unwrap_or_default().clone_into(&mut self.session);
        self.steps.of(&self.session);
        self.acknowledge("session.started", AGENT, session.sequence, &[("definition", "deploy-gate")]);
        self.narrator.line(AGENT, &texts::starts_session(server), STRONG, &position(&session))?;
        self.narrator.line(&named(leader), texts::LEADS_SESSION, STRONG, texts::OTHERS_FOLLOW)?;
        self.narrator.why(&texts::WHY_ANY_SERVER)
    }

    /// A call waits for an approval by mail. Returns the mail, and the server that sent it.
    pub(super) async fn ask(&mut self, callers: &Callers) -> Result<(u64, Mail), Exit> {
        self.narrator.act(texts::ACT_ASK)?;
        let leader = callers.leader_but(0, 1).await?;
        let server = self.other_than(leader)?;
        let reply = self.authorize(callers, server, WRITE_FILE, WRITE_ARGS).await?;
        ensure!(reply.decision() == v1::ToolDecision::Ask && !reply.gate.is_empty(), "no gate was opened");
        self.acknowledge("policy.asked", AGENT, reply.sequence, &[("capability", WRITE_FILE)]);
        self.gate = reply.gate;
        self.narrator.line(AGENT, &texts::asks_to_write(server), CARE, demo::PERSON_IS_ASKED)?;
        let (sender, mail) = self.mail(callers, WRITE_FILE).await?;
        self.narrator.line(PERSON, &texts::gets_mail(sender), CARE, &mail.subject)?;
        for line in mail.text.lines().filter(|line| line.contains(WRITE_FILE)).take(1) {
            self.narrator.detail(line.trim())?;
        }
        self.delivered(callers, server).await?;
        self.narrator.line(&named(sender), texts::RECORDS_DELIVERY, GOOD, texts::ON_TWO_SERVERS)?;
        Ok((sender, mail))
    }

    /// The server that sent the mail is killed, and another one leads. Returns that one.
    pub(super) async fn first_kill(
        &mut self,
        callers: &Callers,
        servers: &mut Servers,
        sender: u64,
        mail: &Mail,
    ) -> Result<u64, Exit> {
        self.narrator.act(texts::ACT_KILL)?;
        let asked = self.other_than(sender)?;
        let next = self.kill_leader(callers, servers, asked).await?;
        let gate = self.look(callers, self.other_than(next)?).await?;
        ensure!(gate.status() == v1::GateStatus::Open, "the gate is no longer open");
        self.narrator.line(PERSON, texts::LOOKS_AT_REQUEST, CARE, demo::STILL_OPEN)?;
        self.delivered(callers, next).await?;
        let again = self.mails(callers, WRITE_FILE).await?;
        let once = |server: u64, other: &Mail| server == sender || other.message_id != mail.message_id;
        ensure!(again.iter().all(|(server, other)| once(*server, other)), "a mail was sent twice");
        self.narrator.line(PERSON, texts::LOOKS_FOR_MAIL, GOOD, texts::SENT_ONCE)?;
        self.narrator.why(&texts::WHY_NO_LOSS)?;
        Ok(next)
    }

    /// The first leader comes back, and the next one is killed.
    pub(super) async fn second_kill(
        &mut self,
        callers: &Callers,
        servers: &mut Servers,
        leader: u64,
    ) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_SECOND_KILL)?;
        self.restart_killed(servers).await?;
        let asked = self.other_than(leader)?;
        self.kill_leader(callers, servers, asked).await.map(drop)
    }

    /// The person replies to the mail in the mailbox of the server that has sent it.
    pub(super) async fn approve(
        &mut self,
        callers: &Callers,
        servers: &mut Servers,
        mailbox: u64,
        mail: &Mail,
    ) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_REPLY)?;
        if !self.running.contains(&mailbox) {
            self.restart_killed(servers).await?;
        }
        let pages = callers.pages(mailbox)?;
        let begun = Instant::now();
        // A reply that comes while the leaders make sure of their tenants is not accepted yet.
        let made = loop {
            pages.reply(mail, demo::APPROVAL, Writer::Person).await?;
            if let Some(made) = self.look(callers, mailbox).await?.resolution {
                break made;
            }
            ensure!(begun.elapsed() < MAIL_MAX, "the reply did not decide the gate");
            tokio::time::sleep(REPLY_AGAIN).await;
        };
        ensure!(made.via == "email" && made.by == WHO, "another caller decided the gate");
        self.steps.recorded("approval.decided", MAIL, &[("decision", "approve"), ("by", WHO)]);
        let outcome = texts::reply_decides(demo::APPROVAL);
        self.narrator.line(PERSON, &texts::replies(mailbox), GOOD, &outcome)?;
        let (sender, _) = self.mail(callers, DECISION_RECORDED).await?;
        self.narrator.line(PERSON, &texts::gets_mail(sender), GOOD, demo::CONFIRMATION)?;
        let server = self.other_than(mailbox)?;
        let reply = self.authorize(callers, server, WRITE_FILE, WRITE_ARGS).await?;
        ensure!(reply.decision() == v1::ToolDecision::Allow && reply.grant_used, "the approval was not used");
        self.acknowledge("policy.allowed", AGENT, reply.sequence, &[("capability", WRITE_FILE)]);
        self.narrator.line(AGENT, &texts::makes_call(server), GOOD, demo::APPROVAL_USED)
    }

    /// All servers run again, and the session ends.
    pub(super) async fn finish(&mut self, callers: &Callers, servers: &mut Servers) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_FINISH)?;
        self.restart_killed(servers).await?;
        for (server, state, answer) in
            [(1, "env-check", "yes"), (2, "migration-check", "n/a"), (3, "traffic-check", "yes")]
        {
            let request = v1::AnswerCheckpointRequest {
                name: self.session.clone(),
                answer: answer.to_owned(),
                request_id: drawn_request_id(),
                ..v1::AnswerCheckpointRequest::default()
            };
            let reply = callers.call(Caller::Agent, server, request, |mut it, request| async move {
                it.sessions.answer_checkpoint(request).await
            });
            let session = reply.await?.session.context("the response has no session")?;
            let data = [("state", state), ("answer", answer)];
            self.acknowledge("session.answered", AGENT, session.sequence, &data);
            let style = if session.end_time.is_some() { GOOD } else { STRONG };
            self.narrator.line(AGENT, &texts::answers(answer, server), style, &position(&session))?;
            if server == COUNT {
                ensure!(session.status() == v1::SessionStatus::Completed, "the session did not complete");
                self.steps.recorded("session.completed", AGENT, &[]);
            }
        }
        Ok(())
    }

    /// All servers have the same history, with every acknowledged step, and every mail was sent once.
    pub(super) async fn compare(&mut self, callers: &Callers, mail: &Mail) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_COMPARE)?;
        let events = self.history(callers, 1).await?;
        let sequences: Vec<u64> = events.iter().map(|event| event.sequence).collect();
        ensure!(sequences.is_sorted_by(|one, next| one < next), "a sequence comes twice");
        for server in 1..=COUNT {
            let same = self.history(callers, server).await? == events;
            ensure!(same, format!("server {server} has another history"));
            let outcome = texts::same_history(&count(events.len(), "event"));
            self.narrator.line(&named(server), texts::SHOWS_HISTORY, GOOD, &outcome)?;
        }
        self.no_step_is_lost(&events)?;
        let mails = self.mails(callers, "").await?;
        let ids: BTreeSet<&str> = mails.iter().map(|(_, mail)| mail.message_id.as_str()).collect();
        ensure!(ids.len() == mails.len() && ids.contains(mail.message_id.as_str()), "a mail was sent twice");
        let requests = mails.iter().filter(|(_, one)| one.text == mail.text);
        ensure!(requests.count() == 1, "the request was not mailed once");
        let outcome = texts::mails_sent_once(&count(mails.len(), "mail"));
        self.narrator.line(PERSON, texts::COUNTS_MAILS, GOOD, &outcome)?;
        self.narrator.plain("")?;
        history::lines(&events).iter().try_for_each(|line| self.narrator.plain(line))
    }

    /// Compares what was acknowledged with the history. A step may have events that are not public after its own.
    fn no_step_is_lost(&self, events: &[v1::SessionEvent]) -> Result<(), Exit> {
        let mut before = 0;
        for one in &self.acknowledged {
            let of_step = before + 1..=one.sequence;
            let found =
                events.iter().any(|event| event.r#type == one.kind && of_step.contains(&event.sequence));
            ensure!(found, format!("the step {} with the sequence {} is lost", one.kind, one.sequence));
            before = one.sequence;
            let of_kind = |kind: &str| events.iter().filter(|event| event.r#type == kind).count();
            let made = self.acknowledged.iter().filter(|other| other.kind == one.kind).count();
            let recorded = of_kind(one.kind);
            ensure!(recorded == made, format!("{made} steps {} were recorded {recorded} times", one.kind));
        }
        let decided = events.iter().filter(|event| event.r#type == "approval.decided").count();
        ensure!(decided == 1, format!("the gate was decided {decided} times"));
        let outcome = texts::steps_recorded_once(self.acknowledged.len());
        self.narrator.line(AGENT, texts::LOOKS_FOR_STEPS, GOOD, &outcome)
    }

    /// Kills the leader, and calls bash at `asked` until the call is allowed. Returns the server that leads then.
    async fn kill_leader(
        &mut self,
        callers: &Callers,
        servers: &mut Servers,
        asked: u64,
    ) -> Result<u64, Exit> {
        let leader = callers.leader_but(0, asked).await?;
        let asked = if asked == leader { self.other_than(leader)? } else { asked };
        servers.kill(leader).await?;
        self.running.retain(|one| *one != leader);
        self.narrator.line(&named(leader), texts::GETS_KILLED, PROBLEM, texts::KILLED_AS_LEADER)?;
        let (took, left) = self.bash(callers, asked).await?;
        let calls = self.acknowledged.iter().filter(|one| one.kind == "policy.allowed").count();
        let expected = u64::try_from(calls).ok().and_then(|calls| CALLS_MAX.checked_sub(calls));
        ensure!(left == expected, format!("a call of bash left {left:?} calls"));
        let outcome = texts::allowed_after(took.as_secs_f64());
        self.narrator.line(AGENT, &texts::calls_bash(asked), GOOD, &outcome)?;
        let next = callers.leader_but(leader, asked).await?;
        self.narrator.line(&named(next), texts::LEADS_NOW, STRONG, texts::ELECTED)?;
        Ok(next)
    }

    /// Starts the servers again that were killed.
    async fn restart_killed(&mut self, servers: &mut Servers) -> Result<(), Exit> {
        for server in 1..=COUNT {
            if self.running.contains(&server) {
                continue;
            }
            let begun = Instant::now();
            servers.start(server).await?;
            self.running.push(server);
            self.running.sort_unstable();
            let outcome = ready_after(begun.elapsed().as_secs_f64());
            self.narrator.line(&named(server), demo::RESTARTS, GOOD, &outcome)?;
        }
        Ok(())
    }
}
