//! Mails that the approver has really signed, for another recipient or with other words. None of them decides, by any route.

mod changed;
mod reached;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sha2::{Digest as _, Sha256};
use switchward_expr::ReplyDecision;
use switchward_mail::incoming::{Envelope, Settings, Sorted};

use crate::forged::{self, RESULTS, all_phrases};
use crate::harness::{APPROVER, HARNESS, Mail, REPLY_TO, Seen, TRUSTED};
use crate::shapes::{LANGUAGES, Language};
use crate::sources::SIGNERS;

const HOSTILE_MIN: usize = 20_000;
/// An attacker who gets mail from the approver, and wants it to decide.
const BOB: &str = "Bob Reed <bob@evil.example>";
/// Another reply address, for another request.
const OTHER_REPLY_TO: &str = "r+tok2@reply.acme.example";

/// The approver's mail, to be changed in each way.
#[derive(Clone, Copy)]
struct SignedMail {
    phrase: &'static str,
    language: &'static Language,
    /// The fields that their mail service signs.
    fields: &'static [&'static str],
}

impl SignedMail {
    /// To a recipient, not signed yet.
    fn unsigned(&self, to: &str) -> Mail {
        Mail::plain(&format!("{}\n\nDana\n", self.phrase)).set("To", to)
    }

    /// To a recipient, signed.
    fn to(&self, to: &str) -> Mail {
        self.sign(self.unsigned(to))
    }

    fn sign(&self, mail: Mail) -> Mail {
        mail.signed(&HARNESS.corp, self.fields)
    }

    /// The signed fields without one.
    fn fields_without(&self, field: &str) -> Vec<&'static str> {
        self.fields.iter().filter(|known| !known.eq_ignore_ascii_case(field)).copied().collect()
    }
}

/// A mail that must not decide.
struct Hostile {
    way: &'static str,
    mail: Mail,
    /// The claimed envelope sender; `None` if there is none.
    sender: Option<&'static str>,
    /// The token of the address that its signature covers, at which it may count.
    meant: Option<&'static str>,
    /// Whether the approver's signature holds, so that a host which checks it reports a pass.
    holds: bool,
}

/// A mail whose signature holds.
fn good(way: &'static str, mail: Mail) -> Hostile {
    Hostile { way, mail, sender: None, meant: None, holds: true }
}

/// A mail with an invalid signature, another signer's, or none.
fn bad(way: &'static str, mail: Mail) -> Hostile {
    Hostile { holds: false, ..good(way, mail) }
}

/// The ways by which one mail reaches us.
fn all_ways(template: &SignedMail) -> Vec<Hostile> {
    [reached::FAMILIES, changed::FAMILIES].concat().iter().flat_map(|family| family(template)).collect()
}

/// Each way and each name of one must appear.
const WAYS: &[&str] = &[
    "another reply address",
    "another token",
    "arc",
    "attached",
    "attached in parts",
    "bcc",
    "bounced",
    "cc",
    "expired",
    "forwarded",
    "header twice",
    "key for something else",
    "key too short",
    "list",
    "list without its fields",
    "name in cc",
    "name in to",
    "not signed to",
    "part signed",
    "quoted",
    "resent",
    "results forged",
    "sent again",
    "tags of the signature",
    "thread",
];

/// How a message arrives: by LMTP with its recipients, or from a mailbox behind a host that adds its results.
fn comes(hostile: &Hostile, from_mailbox: bool) -> (Mail, Envelope, &'static Settings) {
    let sender = hostile.sender.map(str::to_owned);
    if !from_mailbox {
        let envelope = Envelope { sender, recipients: vec![REPLY_TO.to_owned()], peer: None };
        return (hostile.mail.clone(), envelope, &HARNESS.settings);
    }
    let result = if hostile.holds { "pass" } else { "fail" };
    let found = format!(
        "{TRUSTED}; dkim={result} header.d=corp.example header.s=s1; spf=fail smtp.mailfrom=bob@evil.example; \
         dmarc={result} header.from=corp.example"
    );
    let mail = hostile.mail.clone().above("Delivered-To", REPLY_TO).above(RESULTS, &found);
    let mail = if sender.as_deref() == Some("") { mail.above("Return-Path", "<>") } else { mail };
    (mail, Envelope::default(), &HARNESS.trusting)
}

/// The kind of a message, and why it proves nothing, in a few words.
fn sorted_as(seen: &Seen) -> String {
    match &seen.sorted {
        Sorted::Machine { kind } => kind.word().to_owned(),
        Sorted::Bounce(_) => "bounce".to_owned(),
        Sorted::Unusable { reason } => reason.word().to_owned(),
        Sorted::Reply(reply) if reply.from.text != APPROVER => "another sender".to_owned(),
        Sorted::Reply(_) => match seen.proofs.first() {
            None => "no token".to_owned(),
            Some(proof) if proof.is_signed() => "signed, with other words".to_owned(),
            Some(proof) => format!("{:?}", proof.detail),
        },
    }
}

/// The results of all mails.
#[derive(Default)]
struct Tally {
    distinct: HashSet<[u8; 32]>,
    ways: BTreeMap<&'static str, BTreeMap<String, usize>>,
    wrong: Vec<String>,
}

impl Tally {
    async fn add(
        &mut self,
        way: &'static str,
        mail: &Mail,
        came: (&Envelope, &Settings),
        meant: Option<&str>,
    ) {
        let (raw, (envelope, settings)) = (mail.raw(), came);
        let mut hash = Sha256::new();
        hash.update(&raw);
        hash.update(format!("{envelope:?}{:?}", settings.trusted_hosts));
        if !self.distinct.insert(hash.finalize().into()) {
            return;
        }
        let seen = Seen::of(&raw, envelope, settings).await;
        if seen.decides_beside(meant) != ReplyDecision::Undecided {
            self.wrong.push(format!("{way}: {}\n{seen:?}", String::from_utf8_lossy(&raw)));
        }
        *self.ways.entry(way).or_default().entry(sorted_as(&seen)).or_default() += 1;
    }

    fn print(&self) {
        for (way, kinds) in &self.ways {
            println!("{:6} {way}: {kinds:?}", kinds.values().sum::<usize>());
        }
        println!("{} hostile mails, {} of them decide", self.distinct.len(), self.wrong.len());
    }
}

#[tokio::test]
async fn no_mail_decides_that_was_signed_for_somebody_else() {
    let (mut tally, mut languages, mut controls) = (Tally::default(), BTreeSet::new(), 0);
    for (at, phrase) in all_phrases().enumerate() {
        for fields in SIGNERS.iter().skip(at % 3).step_by(3) {
            let language = &LANGUAGES[controls % LANGUAGES.len()];
            let template = SignedMail { phrase, language, fields };
            languages.insert(language.name);
            // The same mail to us decides, so the mails below fail only because of their recipients.
            let control = template.to(REPLY_TO).seen().await.decides();
            assert_ne!(control, ReplyDecision::Undecided, "{phrase:?} signed over {fields:?}");
            controls += 1;
            for hostile in all_ways(&template) {
                for from_mailbox in [false, true] {
                    let (mail, envelope, settings) = comes(&hostile, from_mailbox);
                    tally.add(hostile.way, &mail, (&envelope, settings), hostile.meant).await;
                }
            }
        }
        for case in [forged::forged_results, forged::other_results].iter().flat_map(|family| family(phrase)) {
            tally.add("results forged", &case.mail, (&case.envelope, &HARNESS.trusting), None).await;
        }
    }
    tally.print();
    println!("{controls} mails to us, all of which decide, in {} languages", languages.len());
    let few: Vec<_> = tally.wrong.iter().step_by(tally.wrong.len() / 12 + 1).collect();
    assert!(tally.wrong.is_empty(), "{} decide, such as {few:#?}", tally.wrong.len());
    assert_eq!(tally.ways.keys().copied().collect::<Vec<_>>(), WAYS);
    assert!(tally.distinct.len() >= HOSTILE_MIN, "{}", tally.distinct.len());
    assert_eq!(languages.len(), LANGUAGES.len());
}

/// A mail to somebody else proves nothing here, although its signature is good: its recipient can verify it.
#[tokio::test]
async fn a_mail_to_somebody_else_is_proved_to_them() {
    let theirs = Settings {
        reply_domains: vec!["evil.example".to_owned()],
        reply_address: "bo{token}".parse().unwrap(),
        ..HARNESS.settings.clone()
    };
    for fields in SIGNERS {
        let template = SignedMail { phrase: "approved", language: &LANGUAGES[0], fields };
        let seen = Seen::of(&template.to(BOB).raw(), &Envelope::default(), &theirs).await;
        assert_eq!(seen.decides(), ReplyDecision::Approve, "{fields:?}: {seen:?}");
    }
}
