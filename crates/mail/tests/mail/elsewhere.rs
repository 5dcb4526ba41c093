//! Mails that the approver has really signed, for somebody else or with other words, whichever way they reach us: none of
//! them decides.

mod changed;
mod reached;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sha2::{Digest as _, Sha256};
use switchward_expr::Verdict;
use switchward_mail::incoming::{Envelope, Settings, Sorted};

use crate::forged::{self, RESULTS, all_phrases};
use crate::shapes::{LANGUAGES, Language};
use crate::sources::SIGNERS;
use crate::world::{APPROVER, Mail, REPLY_TO, Seen, TRUSTED, WORLD};

const HOSTILE_MIN: usize = 20_000;
/// Somebody who gets mail of the approver's, and would like to have it decide.
const BOB: &str = "Bob Reed <bob@evil.example>";
/// Another address of ours, for another request.
const OTHER_REPLY_TO: &str = "r+tok2@reply.acme.example";

/// What the approver writes.
#[derive(Clone, Copy)]
struct Letter {
    phrase: &'static str,
    language: &'static Language,
    /// The fields that their mail service signs.
    fields: &'static [&'static str],
}

impl Letter {
    /// To somebody, not signed yet.
    fn unsigned(&self, to: &str) -> Mail {
        Mail::plain(&format!("{}\n\nDana\n", self.phrase)).set("To", to)
    }

    /// To somebody, signed.
    fn to(&self, to: &str) -> Mail {
        self.sign(self.unsigned(to))
    }

    fn sign(&self, mail: Mail) -> Mail {
        mail.signed(&WORLD.corp, self.fields)
    }

    /// The fields that are signed but for one.
    fn fields_without(&self, field: &str) -> Vec<&'static str> {
        self.fields.iter().filter(|known| !known.eq_ignore_ascii_case(field)).copied().collect()
    }
}

/// A mail that must not decide.
struct Hostile {
    way: &'static str,
    mail: Mail,
    /// Who is said to have sent it on; `None`: nobody says.
    sender: Option<&'static str>,
    /// The token of the address that its signature covers, at which it may count.
    meant: Option<&'static str>,
    /// Whether its signature of the approver's holds, so that a host which checks it says so.
    holds: bool,
}

/// A mail whose signature holds.
fn good(way: &'static str, mail: Mail) -> Hostile {
    Hostile { way, mail, sender: None, meant: None, holds: true }
}

/// A mail with a signature that does not hold, of somebody else, or with none.
fn bad(way: &'static str, mail: Mail) -> Hostile {
    Hostile { holds: false, ..good(way, mail) }
}

/// The ways by which one letter reaches us.
fn all_ways(letter: &Letter) -> Vec<Hostile> {
    [reached::FAMILIES, changed::FAMILIES].concat().iter().flat_map(|family| family(letter)).collect()
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

/// How a message comes: by LMTP with its recipients, or out of a mailbox behind a host that says what it has found.
fn comes(hostile: &Hostile, from_mailbox: bool) -> (Mail, Envelope, &'static Settings) {
    let sender = hostile.sender.map(str::to_owned);
    if !from_mailbox {
        let envelope = Envelope { sender, recipients: vec![REPLY_TO.to_owned()], peer: None };
        return (hostile.mail.clone(), envelope, &WORLD.settings);
    }
    let result = if hostile.holds { "pass" } else { "fail" };
    let found = format!(
        "{TRUSTED}; dkim={result} header.d=corp.example header.s=s1; spf=fail smtp.mailfrom=bob@evil.example; \
         dmarc={result} header.from=corp.example"
    );
    let mail = hostile.mail.clone().above("Delivered-To", REPLY_TO).above(RESULTS, &found);
    let mail = if sender.as_deref() == Some("") { mail.above("Return-Path", "<>") } else { mail };
    (mail, Envelope::default(), &WORLD.trusting)
}

/// In one word what a message is, and why it proves nothing.
fn sorted_as(seen: &Seen) -> String {
    match &seen.sorted {
        Sorted::Machine { kind } => kind.word().to_owned(),
        Sorted::Bounce(_) => "bounce".to_owned(),
        Sorted::Unusable { reason } => reason.word().to_owned(),
        Sorted::Reply(reply) if reply.from.text != APPROVER => "another sender".to_owned(),
        Sorted::Reply(_) => match seen.proofs.first() {
            None => "no token".to_owned(),
            Some(proof) if proof.is_signed() => "signed, with other words".to_owned(),
            Some(proof) => proof.detail.join(" "),
        },
    }
}

/// What has been seen of all of them.
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
        if seen.decides_beside(meant) != Verdict::Undecided {
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
            let letter = Letter { phrase, language, fields };
            languages.insert(language.name);
            // The same letter to us decides: what is said below is about where it went.
            let control = letter.to(REPLY_TO).seen().await.decides();
            assert_ne!(control, Verdict::Undecided, "{phrase:?} signed over {fields:?}");
            controls += 1;
            for hostile in all_ways(&letter) {
                for from_mailbox in [false, true] {
                    let (mail, envelope, settings) = comes(&hostile, from_mailbox);
                    tally.add(hostile.way, &mail, (&envelope, settings), hostile.meant).await;
                }
            }
        }
        for case in [forged::forged_results, forged::other_results].iter().flat_map(|family| family(phrase)) {
            tally.add("results forged", &case.mail, (&case.envelope, &WORLD.trusting), None).await;
        }
    }
    tally.print();
    println!("{controls} letters to us, all of which decide, in {} languages", languages.len());
    let few: Vec<_> = tally.wrong.iter().step_by(tally.wrong.len() / 12 + 1).collect();
    assert!(tally.wrong.is_empty(), "{} decide, such as {few:#?}", tally.wrong.len());
    assert_eq!(tally.ways.keys().copied().collect::<Vec<_>>(), WAYS);
    assert!(tally.distinct.len() >= HOSTILE_MIN, "{}", tally.distinct.len());
    assert_eq!(languages.len(), LANGUAGES.len());
}

/// That a letter to somebody else proves nothing here is not because its signature is bad: it proves to them who wrote it.
#[tokio::test]
async fn a_letter_to_somebody_else_is_proved_to_them() {
    let theirs = Settings {
        reply_domains: vec!["evil.example".to_owned()],
        reply_address: "bo{token}".parse().unwrap(),
        ..WORLD.settings.clone()
    };
    for fields in SIGNERS {
        let letter = Letter { phrase: "approved", language: &LANGUAGES[0], fields };
        let seen = Seen::of(&letter.to(BOB).raw(), &Envelope::default(), &theirs).await;
        assert_eq!(seen.decides(), Verdict::Approve, "{fields:?}: {seen:?}");
    }
}
