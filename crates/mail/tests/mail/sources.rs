//! Genuine replies by their source: a mail program, and a mail service with its signed fields. The reply has the effect that
//! its writer meant, or the writer gets the link of the page.

use std::collections::BTreeMap;

use mail_auth::dkim::Canonicalization;
use switchward_expr::{APPROVALS, REJECTIONS, ReplyDecision};
use switchward_mail::incoming::{Envelope, ProofReason, Sorted};

use crate::genuine::request;
use crate::harness::{APPROVER, HARNESS, Mail, REPLY_TO, SIGNED, Seen, said};
use crate::others;
use crate::shapes::{LANGUAGES, SHAPES, Shape, Talk};

const GENUINE_MIN: usize = 2_000;
const SOURCE_MIN: usize = 100;
/// The percentage of replies that must have the intended effect, for each source whose service signs the required fields.
const EFFECT_MIN: usize = 95;

/// The fields that Google's services sign.
const GOOGLE: &[&str] = &[
    "To",
    "Subject",
    "Message-ID",
    "Date",
    "From",
    "In-Reply-To",
    "References",
    "MIME-Version",
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
];
/// The fields that Microsoft 365 and Outlook.com sign.
const MICROSOFT: &[&str] =
    &["From", "Date", "Subject", "Message-ID", "Content-Type", "MIME-Version", "X-MS-Exchange-SenderADCheck"];
const ICLOUD: &[&str] =
    &["From", "Content-Type", "MIME-Version", "Subject", "Date", "Message-ID", "To", "X-iCloud-HME"];
const YAHOO: &[&str] =
    &["Date", "From", "To", "In-Reply-To", "References", "Subject", "From", "Subject", "Reply-To"];
const PROTON: &[&str] = &[
    "Date",
    "To",
    "From",
    "Subject",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Feedback-ID",
    "From",
    "To",
    "Cc",
    "Date",
    "Subject",
    "Reply-To",
    "Feedback-ID",
    "Message-ID",
    "BIMI-Selector",
];
const FASTMAIL: &[&str] = &[
    "Cc",
    "Content-Transfer-Encoding",
    "Content-Type",
    "Content-Type",
    "Date",
    "Date",
    "From",
    "From",
    "In-Reply-To",
    "In-Reply-To",
    "Message-ID",
    "MIME-Version",
    "References",
    "Reply-To",
    "Subject",
    "Subject",
    "To",
    "To",
];
const GMX: &[&str] = &["X-UI-Sender-Class", "From", "To", "Subject", "Date", "In-Reply-To", "References"];
const ZOHO: &[&str] = &[
    "Content-Type",
    "Content-Transfer-Encoding",
    "Cc",
    "Cc",
    "Date",
    "Date",
    "From",
    "From",
    "In-Reply-To",
    "MIME-Version",
    "Message-ID",
    "References",
    "Subject",
    "Subject",
    "To",
    "To",
    "Message-ID",
    "Reply-To",
];

/// The services that sign the required fields.
pub(crate) const SIGNERS: &[&[&str]] = &[SIGNED, GOOGLE, ICLOUD, PROTON, FASTMAIL, ZOHO, YAHOO, GMX];

/// A source of replies.
struct Source {
    name: &'static str,
    /// The ways in which its programs write.
    shapes: &'static [&'static str],
    /// The fields that its service signs.
    fields: &'static [&'static str],
    body: Canonicalization,
}

const fn source(
    name: &'static str,
    fields: &'static [&'static str],
    shapes: &'static [&'static str],
) -> Source {
    Source { name, shapes, fields, body: Canonicalization::Relaxed }
}

const SOURCES: &[Source] = &[
    source("Gmail, web", GOOGLE, &["gmail", "gmail html", "gmail, with fonts"]),
    source("Gmail, phone", GOOGLE, &["gmail phone", "gmail plain"]),
    source(
        "Outlook, desktop",
        SIGNED,
        &["outlook desktop", "outlook desktop, with lists", "outlook plain", "outlook old"],
    ),
    source("Outlook, web, Microsoft 365", MICROSOFT, &["outlook web", "outlook web, with fonts"]),
    source("Outlook, phone, Microsoft 365", MICROSOFT, &["outlook phone"]),
    source(
        "Apple Mail, iCloud",
        ICLOUD,
        &["apple", "apple html", "apple, with fonts", "apple, with our style"],
    ),
    source("iPhone, iCloud", ICLOUD, &["iphone"]),
    source("Android", GOOGLE, &["android"]),
    source(
        "Thunderbird",
        SIGNED,
        &["thunderbird", "thunderbird html", "thunderbird below", "thunderbird html below"],
    ),
    source("KMail, mutt", SIGNED, &["kmail", "mutt below", "stars"]),
    source("Yahoo", YAHOO, &["yahoo"]),
    source("Proton", PROTON, &["proton"]),
    source("Fastmail", FASTMAIL, &["fastmail"]),
    Source { body: Canonicalization::Simple, ..source("GMX, web.de", GMX, &["gmx"]) },
    source("Zoho", ZOHO, &["zoho"]),
];

/// Texts that decide; `@` is the phrase. The last one does not decide, as only the first line counts.
const DECIDING: &[&str] = &[
    "@",
    "@.",
    "@!",
    "@",
    "@, thanks",
    "@ thank you!",
    "@, cheers",
    "@. Thanks!",
    "@, please",
    "@\n\nThanks,\nDana",
    "@.\n\nPlease take care with the migration, and tell me when it is done.",
    "@\nDana Reed\nHead of releases",
    "\n\n@\n\nregards",
    "@  \n- first check the traffic\n- then the logs",
    "@, please\n\n\n\nDana",
    "*@*",
    "@\n\nBut mind the gap.",
    "@!\n\nSee https://acme.example/runbook?step=4 for the rest.",
    "@\n\nBest\nD.",
    "@, thank you\n\nDana Reed | Acme Corp | +1 555 0100",
    "@\n\nI looked at the plan yesterday: fine with me.",
    "@.\n\nThis mail is confidential. If you are not whom it is for, delete it.",
    "Hi all,\n\n@\n\nDana",
];

/// Texts that do not decide.
const ASKING: &[&str] = &[
    "What does it cost?",
    "Not yet, I have to ask Sam first.",
    "Who else has looked at this?\n\nDana",
    "I am not sure that I would approve this.",
];

/// What is written, and what it is meant to do.
fn writings(at: usize) -> Vec<(String, ReplyDecision)> {
    let decisions = DECIDING.iter().enumerate().flat_map(move |(step, form)| {
        let approval = APPROVALS[(at * 5 + step) % APPROVALS.len()];
        let rejection = REJECTIONS[(at * 3 + step) % REJECTIONS.len()];
        [(approval, ReplyDecision::Approve), (rejection, ReplyDecision::Reject)]
            .map(|(phrase, meant)| (form.replace('@', &capital(phrase)), meant))
    });
    let questions = ASKING.iter().map(|text| ((*text).to_owned(), ReplyDecision::Undecided));
    decisions.chain(questions).collect()
}

fn capital(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What is known of the replies of one source.
#[derive(Default, Debug)]
struct Came {
    all: usize,
    /// Those that were to decide, and are signed as they must be.
    deciding: usize,
    /// Of these, those that do.
    decided: usize,
    /// Replies that should not decide, and do not.
    asked: usize,
    /// Replies without the required signature: their writer is asked to decide on the page.
    unproved: usize,
    /// Replies that are not understood: their writer gets instructions, with the link of the page.
    unclear: usize,
}

impl Came {
    /// Counts a reply by what its writer meant. Each is recorded in its session and answered, which the gateway's tests
    /// check.
    fn add(&mut self, name: &str, seen: &Seen, meant: ReplyDecision) {
        self.all += 1;
        let Sorted::Reply(reply) = &seen.sorted else { panic!("{name}: {seen:?}") };
        let [proof] = &seen.proofs[..] else { panic!("{name}: {seen:?}") };
        assert_eq!((reply.from.text.as_str(), reply.tokens[0].text.as_str()), (APPROVER, "tok1"), "{name}");
        if !proof.is_signed() {
            // Not proved for good, so that it is answered and not tried again.
            assert!(
                !proof.is_open() && proof.detail.contains(&ProofReason::FieldNotSigned),
                "{name}: {proof:?}"
            );
            assert_eq!(seen.decides(), ReplyDecision::Undecided, "{name}");
            self.unproved += 1;
            return;
        }
        let does = said(&reply.text);
        assert!(does == meant || does == ReplyDecision::Undecided, "{name}: {:?}", reply.text);
        match (meant, does) {
            (ReplyDecision::Undecided, _) => self.asked += 1,
            (ReplyDecision::Approve | ReplyDecision::Reject, ReplyDecision::Undecided) => {
                self.deciding += 1;
                self.unclear += 1;
                println!("unclear: {name}: {:?}", reply.text.lines().next().unwrap_or_default());
            }
            (ReplyDecision::Approve | ReplyDecision::Reject, _) => {
                self.deciding += 1;
                self.decided += 1;
            }
        }
    }

    fn print(&self, name: &str) {
        let Self { all, deciding, decided, asked, unproved, unclear } = self;
        println!(
            "{name:30} {all:4} replies: {decided:4} of {deciding:4} decide as meant, {asked:2} ask; answered with the page: \
             {unproved:4} not signed as they must be, {unclear:2} unclear"
        );
    }

    fn check(&self, name: &str) {
        assert!(self.all >= SOURCE_MIN, "{name}: {self:?}");
        assert!(self.decided * 100 >= self.deciding * EFFECT_MIN, "{name}: {self:?}");
        assert_eq!(self.decided + self.asked + self.unproved + self.unclear, self.all, "{name}");
    }
}

async fn seen(mail: Mail, fields: &[&str], body: Canonicalization) -> Seen {
    let mail = mail.signed_with(&HARNESS.corp, fields, |signer| signer.body_canonicalization(body));
    Seen::of(
        &mail.raw(),
        &Envelope { recipients: vec![REPLY_TO.to_owned()], ..Envelope::default() },
        &HARNESS.settings,
    )
    .await
}

fn shape(name: &str) -> &'static Shape {
    SHAPES.iter().find(|shape| shape.name == name).unwrap()
}

/// All replies of one source.
async fn replies(source: &Source, step: usize) -> Came {
    let (quoted, mut came) = (request(), Came::default());
    for round in 0..4 {
        for (at, (own, meant)) in writings(step + round).into_iter().enumerate() {
            let shape = shape(source.shapes[(at + round) % source.shapes.len()]);
            let language = &LANGUAGES[(at + 7 * round + step) % LANGUAGES.len()];
            let mail = (shape.mail)(&Talk { own: &own, quoted: &quoted, language });
            let name = format!("{} {} {} {own:?}", source.name, shape.name, language.name);
            came.add(&name, &seen(mail, source.fields, source.body).await, meant);
        }
    }
    came
}

/// Returns true if a source's service signs all required fields.
fn signs_what_it_must(source: &Source) -> bool {
    let signs = |name: &str| source.fields.iter().any(|field| field.eq_ignore_ascii_case(name));
    HARNESS.settings.signed_fields.iter().all(|name| signs(name)) && (signs("message-id") || signs("date"))
}

#[tokio::test]
async fn a_genuine_reply_does_what_its_writer_meant_or_is_answered_with_the_page() {
    let mut sources = BTreeMap::new();
    for (step, source) in SOURCES.iter().enumerate() {
        let came = replies(source, step).await;
        let signed = signs_what_it_must(source);
        assert_eq!((came.unproved == 0, came.deciding > 0), (signed, signed), "{}: {came:?}", source.name);
        sources.insert(source.name.to_owned(), came);
    }
    for (name, bodies) in others::replies() {
        let mut came = Came::default();
        for round in 0..(SOURCE_MIN / bodies.len() + 1) {
            for (at, body) in bodies.iter().enumerate() {
                let (own, meant) =
                    writings(round).swap_remove((at * 5 + round * 11) % (2 * DECIDING.len() - 2));
                let own = own.trim().lines().next().unwrap_or_default().to_owned();
                let what = format!("{name} {at} {own:?}");
                came.add(&what, &seen(body(&own), SIGNED, Canonicalization::Relaxed).await, meant);
            }
        }
        sources.insert(name.to_owned(), came);
    }
    for (name, came) in &sources {
        came.print(name);
    }
    let all: usize = sources.values().map(|came| came.all).sum();
    println!("{all} genuine replies of {} sources", sources.len());
    for (name, came) in &sources {
        came.check(name);
    }
    assert!(all >= GENUINE_MIN && sources.len() >= 12, "{all} of {}", sources.len());
}
