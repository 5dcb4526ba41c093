//! A mail that a session's agent sends. See `docs/formats-checkpoint.md#money-and-mail` and
//! `tests/corpus/checkpoint/sentences.tsv#7-5a`.
//!
//! It is judged as a call of [`SENDING`] whose arguments are exactly what goes out: the two are made of one value, so
//! that no mail can go to somebody whom the lists have not seen.

use minicbor::{CborLen, Decode, Encode};
use serde_json::{Map, Value};
use switchward_machine::{Channel, Content, SENDING};

use crate::delivery::{EffectBody, MailHead, MessageText, Purpose};
use crate::limits::{
    ADDRESS_BYTES_MAX, MAIL_RECIPIENTS_MAX, MAIL_SUBJECT_CHARS_MAX, MAIL_TEXT_BYTES_MAX,
    RESULT_SHOWN_BYTES_MAX,
};
use crate::policy::{Args, Authorize};

/// A mail as it goes out. It can be made only with [`Outgoing::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    head: MailHead,
    bcc: Vec<String>,
    subject: String,
    text: String,
}

impl<C> Encode<C> for Outgoing {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.draft().encode(e, ctx)
    }
}

/// Reads a draft, and looks at it as at any other.
impl<'b, C> Decode<'b, C> for Outgoing {
    fn decode(d: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bad = |bad: BadMail| format!("{} {}", bad.field, bad.problem);
        Self::new(Draft::decode(d, ctx)?).map_err(|no| minicbor::decode::Error::message(bad(no)))
    }
}

/// Why a mail cannot go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadMail {
    /// Which part: `from`, `to`, `cc`, `bcc`, `subject` or `text`.
    pub field: &'static str,
    /// What is wrong with it, as the rest of a sentence that begins with the part's name.
    pub problem: String,
}

/// What a mail is made of, before it is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Draft {
    /// Who sends it; empty: the server's own address.
    #[n(0)]
    pub from: String,
    /// The addresses of its receivers, as all see them.
    #[n(1)]
    pub to: Vec<String>,
    /// Who gets it, too, and all see that.
    #[n(2)]
    pub cc: Vec<String>,
    /// Who gets it, and nobody sees that.
    #[n(3)]
    pub bcc: Vec<String>,
    /// One line.
    #[n(4)]
    pub subject: String,
    /// Plain text.
    #[n(5)]
    pub text: String,
}

impl Outgoing {
    /// Reads a draft. Addresses are bare, such as `ann@example.com`: what is judged and what is sent cannot differ.
    ///
    /// # Errors
    /// An address is none, nobody would get it or more than [`MAIL_RECIPIENTS_MAX`] would, the subject has several lines
    /// or more than [`MAIL_SUBJECT_CHARS_MAX`] characters, the text more than [`MAIL_TEXT_BYTES_MAX`] bytes.
    pub fn new(draft: Draft) -> Result<Self, BadMail> {
        let Draft { from, to, cc, bcc, subject, text } = draft;
        let from = if from.is_empty() { None } else { Some(address("from", &from)?) };
        let (to, cc, bcc) = (addresses("to", &to)?, addresses("cc", &cc)?, addresses("bcc", &bcc)?);
        let bad = |field, message: String| Err(BadMail { field, problem: message });
        match to.len() + cc.len() + bcc.len() {
            0 => {
                let message = "must name somebody, or cc or bcc must".to_owned();
                return bad("to", message);
            }
            many if many > MAIL_RECIPIENTS_MAX => {
                let message = format!("and cc and bcc name {many}, at most {MAIL_RECIPIENTS_MAX} may be");
                return bad("to", message);
            }
            _ => {}
        }
        if subject.chars().any(char::is_control) {
            let message = "must be one line without control characters".to_owned();
            return bad("subject", message);
        }
        if subject.chars().count() > MAIL_SUBJECT_CHARS_MAX {
            let message = format!("is more than {MAIL_SUBJECT_CHARS_MAX} characters");
            return bad("subject", message);
        }
        if text.len() > MAIL_TEXT_BYTES_MAX {
            let message = format!("is more than {MAIL_TEXT_BYTES_MAX} bytes");
            return bad("text", message);
        }
        Ok(Self { head: MailHead { from, to, cc }, bcc, subject, text })
    }

    /// The call that sends it.
    ///
    /// # Errors
    /// Never with what [`Outgoing::new`] lets through.
    pub fn call(self, call_id: String) -> Result<Authorize, BadMail> {
        let (capability, args) = (SENDING.to_owned(), self.args()?);
        Ok(Authorize { capability, args, estimate: None, call_id, limits: None, mail: Some(self) })
    }

    /// The arguments that the call is judged by.
    fn args(&self) -> Result<Args, BadMail> {
        let mut fields = Map::new();
        fields.extend(self.head.from.iter().map(|from| ("from".to_owned(), from.as_str().into())));
        for (name, list) in [("to", &self.head.to), ("cc", &self.head.cc), ("bcc", &self.bcc)] {
            if !list.is_empty() {
                fields.insert(name.into(), list.as_slice().into());
            }
        }
        fields.insert("subject".into(), self.subject.as_str().into());
        fields.insert("text".into(), self.text.as_str().into());
        Args::parse(Value::Object(fields).to_string().as_bytes())
            .map_err(|bad| BadMail { field: "text", problem: bad.0 })
    }

    /// The draft that it was made of.
    pub(crate) fn draft(&self) -> Draft {
        let MailHead { from, to, cc } = self.head.clone();
        let (bcc, subject, text) = (self.bcc.clone(), self.subject.clone(), self.text.clone());
        Draft { from: from.unwrap_or_default(), to, cc, bcc, subject, text }
    }

    /// One effect for each who gets it, each once.
    pub fn effects(&self) -> Vec<EffectBody> {
        let mut seen: Vec<&str> = Vec::new();
        for one in self.head.to.iter().chain(&self.head.cc).chain(&self.bcc) {
            if !seen.iter().any(|known| known.eq_ignore_ascii_case(one)) {
                seen.push(one);
            }
        }
        let effect = |to: &str| EffectBody::Message {
            channel: Channel::Email,
            to: to.to_owned(),
            text: MessageText::Written {
                subject: Some(self.subject.clone()),
                body: self.text.clone(),
                content: Content::Text,
            },
            gate: None,
            purpose: Purpose::Say,
            head: Some(self.head.clone()),
        };
        seen.into_iter().map(effect).collect()
    }
}

fn addresses(field: &'static str, list: &[String]) -> Result<Vec<String>, BadMail> {
    list.iter().map(|one| address(field, one)).collect()
}

/// A bare address, in a form that every mail server reads alike.
fn address(field: &'static str, text: &str) -> Result<String, BadMail> {
    let plain = |character: char| {
        character.is_ascii_graphic() && !"<>()[]\\,;:\"".contains(character) || character.is_alphanumeric()
    };
    let whole = text.split_once('@').is_some_and(|(local, host)| {
        let dotted = |part: &str| !part.is_empty() && !part.split('.').any(str::is_empty);
        dotted(local) && dotted(host) && !host.contains('@')
    });
    if whole && text.len() <= ADDRESS_BYTES_MAX && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    let shown = &text[..text.floor_char_boundary(RESULT_SHOWN_BYTES_MAX.min(text.len()))];
    let message = format!("holds {shown:?}, which is not an address such as ann@example.com");
    Err(BadMail { field, problem: message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(from: &str, to: &[&str], subject: &str) -> Draft {
        let to = to.iter().map(|&one| one.to_owned()).collect();
        Draft { from: from.into(), to, subject: subject.into(), text: "t".into(), ..Draft::default() }
    }

    #[test]
    fn what_is_judged_is_what_goes_out() {
        let cc = vec!["ann@a.example".to_owned(), "cy@a.example".into()];
        let bcc = vec!["dee@a.example".to_owned(), "CY@a.example".into()];
        let mail =
            Outgoing::new(Draft { cc, bcc, ..draft("bot@a.example", &["Ann@a.example"], "s") }).unwrap();
        let sent: Vec<String> = mail
            .effects()
            .into_iter()
            .map(|body| if let EffectBody::Message { to, .. } = body { to } else { unreachable!() })
            .collect();
        assert_eq!(sent, ["Ann@a.example", "cy@a.example", "dee@a.example"]);
        let call = mail.call("c".into()).unwrap();
        assert_eq!(
            std::str::from_utf8(call.args.json()).unwrap(),
            r#"{"bcc":["dee@a.example","CY@a.example"],"cc":["ann@a.example","cy@a.example"],"from":"bot@a.example","subject":"s","text":"t","to":["Ann@a.example"]}"#
        );
        assert_eq!(call.capability, "resend-email");
    }

    #[test]
    fn nothing_that_could_become_a_header_or_a_second_address_gets_through() {
        let fails = |draft: Draft| Outgoing::new(draft).unwrap_err().field;
        for bad in [
            "",
            "ann",
            "@a.example",
            "ann@",
            "a@b@c",
            "ann@a..example",
            ".ann@a.example",
            "ann@a.example,x@e.example",
            "Ann <ann@a.example>",
            "ann@a.example\r\nBcc: x@e.example",
            "ann @a.example",
            "ann@a.example\0",
            "\"a b\"@a.example",
            "ann@[127.0.0.1]",
            "ann@a.example;x@e.example",
            "ann@a.\u{2028}example",
        ] {
            assert_eq!(fails(draft("", &[bad], "s")), "to", "{bad:?}");
        }
        assert_eq!(fails(draft("Bot <bot@a.example>", &["ann@a.example"], "s")), "from");
        for subject in ["s\r\nBcc: x@e.example", "s\n", "a\u{85}b", "\0"] {
            assert_eq!(fails(draft("", &["ann@a.example"], subject)), "subject", "{subject:?}");
        }
        assert_eq!(fails(draft("", &[], "s")), "to");
        let many: Vec<String> = (0..=MAIL_RECIPIENTS_MAX).map(|n| format!("a{n}@a.example")).collect();
        assert_eq!(fails(Draft { bcc: many, ..Draft::default() }), "to");
        assert_eq!(fails(draft("", &["ann@a.example"], &"s".repeat(MAIL_SUBJECT_CHARS_MAX + 1))), "subject");
        let text = "t".repeat(MAIL_TEXT_BYTES_MAX + 1);
        assert_eq!(fails(Draft { text, ..draft("", &["ann@a.example"], "s") }), "text");
        assert!(Outgoing::new(draft("", &["j\u{fc}rgen.o'neil+x@b\u{fc}cher.example"], "")).is_ok());
    }
}
