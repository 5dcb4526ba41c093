//! Genuine replies: what a person wrote is what is read.

use switchward_expr::{APPROVALS, REJECTIONS, Verdict};
use switchward_mail::incoming::Sorted;

use crate::shapes::{LANGUAGES, SHAPES, Shape, Talk};
use crate::world::{Mail, decides, said};

const GENUINE_MIN: usize = 300;
const CLEAR_SHARE_MIN: f64 = 0.9;

/// The mail that is answered, as it would be quoted.
pub(crate) fn request() -> Vec<String> {
    let text = "--- reply above this line ---\nRelease manager, one decision is waiting for you.\n\n  What     deploy api 1.42 to prod\n\nTo decide, answer this mail with one word on the first line:\n  APPROVE    or    REJECT      (a comment may follow on the next lines)\nApproved\nOr open the decision page: https://acme.example/a/x";
    text.lines().map(str::to_owned).collect()
}

fn expected(phrase: &str) -> Verdict {
    if APPROVALS.contains(&phrase) { Verdict::Approve } else { Verdict::Reject }
}

fn capital(phrase: &str) -> String {
    let mut letters = phrase.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

async fn read(mail: Mail) -> (Verdict, String) {
    match mail.genuine().sorted().await {
        Sorted::Reply(reply) => {
            assert!(reply.authentication.aligned, "{:?}", reply.authentication);
            (decides(&Sorted::Reply(reply.clone())), reply.text)
        }
        other @ (Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. }) => {
            panic!("a person's reply is {other:?}")
        }
    }
}

#[tokio::test]
async fn a_phrase_on_the_first_line_is_what_is_read_whatever_the_program() {
    let quoted = request();
    let (mut count, mut wrong) = (0, Vec::new());
    for (at, shape) in SHAPES.iter().enumerate() {
        for (beside, language) in LANGUAGES.iter().enumerate() {
            for (phrase, own) in phrases(at + beside, shape) {
                let (verdict, text) =
                    read((shape.mail)(&Talk { own: &own, quoted: &quoted, language })).await;
                count += 1;
                if verdict != expected(phrase) {
                    wrong.push(format!("{} {} {own:?}: {verdict:?} of {text:?}", shape.name, language.name));
                }
            }
        }
    }
    println!("{count} genuine replies, {} of them read wrongly", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= GENUINE_MIN, "{count}");
}

/// Four phrases, and what is written with each.
fn phrases(at: usize, shape: &Shape) -> Vec<(&'static str, String)> {
    let all: Vec<&str> = APPROVALS.iter().chain(REJECTIONS).copied().collect();
    let pick = |step: usize| all[(at * 4 + step) % all.len()];
    let comment = if shape.bottom { "" } else { "\n\nBut mind the gap.\nDana" };
    vec![
        (pick(0), pick(0).to_owned()),
        (pick(1), format!("{}!", capital(pick(1)))),
        (pick(2), format!("{}, thanks.{comment}", capital(pick(2)))),
        (pick(3), format!("{}{comment}\n\nOn it,\nDana", pick(3).to_uppercase())),
    ]
}

/// Ways to say something clearly; `@` is the phrase. Only the first line decides, so those with a greeting above it do
/// not, and their share is what it may cost.
const CLEAR: &[&str] = &[
    "@",
    "@.",
    "@!",
    "@, thanks",
    "@ thank you!",
    "@, cheers",
    "@\n\nThanks,\nDana",
    "@.\n\nPlease take care with the migration, and tell me when it is done.",
    "@\nDana Reed\nHead of releases",
    "\n\n@\n\nregards",
    "@  \n- first check the traffic\n- then the logs",
    "@, please\n\n\n\nDana",
    "*@*",
    "Hi all,\n\n@\n\nDana",
];

#[tokio::test]
async fn nearly_all_clear_decisions_are_read_and_none_as_another() {
    let quoted = request();
    let (mut count, mut read_right, mut wrong) = (0_u32, 0_u32, Vec::new());
    for shape in SHAPES {
        for (at, form) in CLEAR.iter().enumerate() {
            for (phrase, language) in
                ["approved", "reject", "go ahead", "no"].iter().zip([at, at + 7, at + 13, at + 19])
            {
                let own = form.replace('@', &capital(phrase));
                let language = &LANGUAGES[language % LANGUAGES.len()];
                let (verdict, text) =
                    read((shape.mail)(&Talk { own: &own, quoted: &quoted, language })).await;
                count += 1;
                if verdict == expected(phrase) {
                    read_right += 1;
                } else if verdict != Verdict::Undecided {
                    wrong.push(format!("{} {own:?}: {verdict:?} of {text:?}", shape.name));
                }
            }
        }
    }
    let share = f64::from(read_right) / f64::from(count);
    println!(
        "{read_right} of {count} clear decisions are read ({:.1} %), {} as another",
        share * 100.0,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(share >= CLEAR_SHARE_MIN, "{share}");
}

#[tokio::test]
async fn nothing_is_read_of_a_reply_without_words_of_its_own() {
    let quoted = request();
    for shape in SHAPES {
        for language in LANGUAGES {
            let (_, text) = read((shape.mail)(&Talk { own: "", quoted: &quoted, language })).await;
            assert_eq!(said(&text), Verdict::Undecided, "{} {}: {text:?}", shape.name, language.name);
        }
    }
}
