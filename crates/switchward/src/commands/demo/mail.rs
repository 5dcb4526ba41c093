//! The act of the demo in which a person replies to a mail.

use anyhow::Context as _;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use switchward_api::v1;
use switchward_delivery::http::{Client, Config, Request};
use switchward_messages::cli::demo as texts;

use super::story::{AGENT, PERSON, Story, ensure};
use crate::exit::Exit;
use crate::output::{CARE, GOOD};
use crate::receiver::Here;

pub(super) const WRITE_FILE: &str = "mcp:filesystem:write_file";
pub(super) const WRITE_ARGS: &str = r#"{"path":"/srv/releases/current"}"#;
/// How long a mail may take from its gate to the mailbox.
pub(super) const MAIL_MAX: Duration = Duration::from_secs(30);
/// The pause between two reads of the mailbox.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Who writes a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// The recipient, by hand.
    Person,
    /// The person's mail program, by itself.
    Program,
}

/// A mail of the development mailbox.
#[derive(Deserialize)]
pub(super) struct Mail {
    page: String,
    pub(super) message_id: String,
    pub(super) subject: String,
    pub(super) text: String,
}

/// The pages of one of the demo's servers.
pub(super) struct Pages {
    client: Client,
    address: String,
}

impl Pages {
    /// The pages of the server at this address.
    ///
    /// # Errors
    /// The client cannot be set up.
    pub(super) fn of(address: &str) -> anyhow::Result<Self> {
        Ok(Self { client: Client::new(Config::new(Arc::new(Here)))?, address: address.to_owned() })
    }

    /// Asks for a page, or sends a form to it.
    async fn ask(&self, method: &str, path: &str, form: Option<String>) -> anyhow::Result<serde_json::Value> {
        let kind = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
        let request = Request {
            method: method.to_owned(),
            url: format!("{}{path}", self.address),
            headers: form.is_some().then_some(kind).into_iter().collect(),
            body: form.map(Into::into),
            deadline: MAIL_MAX,
        };
        let answer = self.client.send(0, &request).await.with_context(|| format!("{method} {path}"))?;
        anyhow::ensure!(answer.status < 400, "{method} {path} returned {}", answer.status);
        Ok(answer.body)
    }

    /// All mails in the server's mailbox, the newest first.
    ///
    /// # Errors
    /// The server does not show them.
    pub(super) async fn all(&self) -> anyhow::Result<Vec<Mail>> {
        Ok(serde_json::from_value(self.ask("GET", "/mail.json", None).await?)?)
    }

    /// Waits for a mail with these words and returns the newest one.
    async fn mail(&self, words: &str) -> anyhow::Result<Mail> {
        let look = async {
            loop {
                if let Some(mail) = self.all().await?.into_iter().find(|mail| mail.text.contains(words)) {
                    return anyhow::Ok(mail);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(MAIL_MAX, look).await.with_context(|| format!("no mail contains {words:?}"))?
    }

    /// Replies to a mail on its page.
    ///
    /// # Errors
    /// The server does not take the form.
    pub(super) async fn reply(&self, mail: &Mail, words: &str, writer: Writer) -> anyhow::Result<()> {
        let text: String = words.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let auto = match writer {
            Writer::Person => "",
            Writer::Program => "&auto=yes",
        };
        let page = self.ask("GET", &mail.page, None).await?;
        let token = page.as_str().and_then(|page| page.split("name=\"token\" value=\"").nth(1));
        let token = token.and_then(|rest| rest.split('"').next()).context("the mail's page has no form")?;
        let form = format!("token={token}&text={text}&proved=yes{auto}");
        self.ask("POST", &format!("{}/reply", mail.page), Some(form)).await.map(drop)
    }
}

impl Story {
    /// A mail asks, and the reply to it decides; automatic replies and comments do not.
    pub(super) async fn mail(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_MAIL)?;
        let before = std::mem::take(&mut self.gate);
        self.gate = self.asked_for(WRITE_FILE, WRITE_ARGS, texts::ASKS_TO_WRITE).await?;
        let pages = Pages::of(self.server.address())?;
        let mail = pages.mail(WRITE_FILE).await?;
        self.narrator.line(PERSON, texts::GETS_MAIL, CARE, &mail.subject)?;
        let link = mail.text.split("Decision page: ").nth(1).and_then(|rest| rest.lines().next());
        let link =
            link.and_then(|link| link.strip_prefix(self.server.address())).context("the mail has no link")?;
        for method in ["GET", "HEAD"] {
            pages.ask(method, link, None).await?;
        }
        self.still_open("scanner", texts::OPENS_LINK, texts::NO_CHANGE).await?;
        pages.reply(&mail, texts::AUTOMATIC_REPLY, Writer::Program).await?;
        self.still_open(PERSON, texts::REPLIES_AUTOMATICALLY, texts::AUTOMATIC_IGNORED).await?;
        pages.reply(&mail, texts::DOUBT, Writer::Person).await?;
        self.steps.recorded("approval.discussed", MAIL, &[("by", WHO)]);
        self.still_open(PERSON, &texts::replies(texts::DOUBT), texts::COMMENT_RECORDED).await?;
        pages.reply(&mail, texts::APPROVAL, Writer::Person).await?;
        let gate = self.look().await?;
        let made = gate.resolution.context("the reply did not decide the gate")?;
        ensure!(made.via == "email" && made.by == WHO, "another caller decided the gate");
        self.steps.recorded("approval.decided", MAIL, &[("decision", "approve"), ("by", WHO)]);
        self.narrator.line(PERSON, &texts::replies(texts::APPROVAL), GOOD, texts::APPROVED)?;
        pages.mail(texts::DECISION_RECORDED).await?;
        self.narrator.line(PERSON, texts::GETS_ACKNOWLEDGEMENT, GOOD, texts::CONFIRMATION)?;
        let granted = self.authorized(WRITE_FILE, WRITE_ARGS).await?;
        ensure!(
            granted.decision() == v1::ToolDecision::Allow && granted.grant_used,
            "the approval was not used"
        );
        self.steps.recorded("policy.allowed", AGENT, &[("capability", WRITE_FILE)]);
        self.narrator.line(AGENT, texts::MAKES_CALL, GOOD, texts::APPROVAL_USED)?;
        self.gate = before;
        self.narrator.why(&texts::WHY_SAFE)
    }

    async fn still_open(&self, who: &str, did: &str, outcome: &str) -> Result<(), Exit> {
        let gate = self.look().await?;
        ensure!(gate.status() == v1::GateStatus::Open, "the gate is not open any more");
        self.narrator.line(who, did, CARE, outcome)
    }
}

/// The caller that brings replies, as in the history.
pub(super) const MAIL: &str = "mail";
/// The person who is notified of gates on a development server.
pub(super) const WHO: &str = crate::commands::dev::PERSON;
