//! Messages with changed bytes: no panic, no long run time, and no change makes a decision.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use switchward_expr::ReplyDecision;
use tokio::runtime::Runtime;

use crate::genuine::request;
use crate::harness::{HARNESS, Mail, Seen};
use crate::shapes::{LANGUAGES, SHAPES, Talk};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());

/// Genuine questions, which do not decide, in every shape.
static QUESTIONS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let quoted = request();
    let mail = |(at, shape): (usize, &crate::shapes::Shape)| {
        let language = &LANGUAGES[at % LANGUAGES.len()];
        (shape.mail)(&Talk { own: "Is this approved?", quoted: &quoted, language }).genuine().raw()
    };
    SHAPES.iter().enumerate().map(mail).collect()
});

fn sorted(raw: &[u8]) -> ReplyDecision {
    let began = Instant::now();
    let seen = RUNTIME.block_on(Seen::of(raw, &Default::default(), &HARNESS.trusting));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    seen.decides()
}

/// A change of a message: the position, the number of bytes to replace, and the new bytes.
fn change() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    let pieces: Vec<&[u8]> = vec![
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"\0",
        b":",
        b"<",
        b">",
        b"\"",
        b"(",
        b"=",
        b"=?utf-8?b?",
        b"--b1",
        b"--b1--\r\n",
        b"From: dana@corp.example\r\n",
        b"Content-Type: multipart/mixed; boundary=b1\r\n",
        b"approved\r\n",
        b"> ",
        b"</div>",
        b"<div style=\"display:none\">",
        b"<!--",
        b"-->",
        b"\xff\xfe",
        b"\xe2\x80\xae",
        b";",
        b"&nbsp;",
        b"&#0;",
        b"Content-Transfer-Encoding: base64\r\n",
        b"charset=utf-7",
        b"Authentication-Results: mx.acme.example; dmarc=pass\r\n",
    ];
    let piece = proptest::sample::select(pieces).prop_map(<[u8]>::to_vec);
    let bytes = prop_oneof![piece, proptest::collection::vec(any::<u8>(), 0..6)];
    (any::<prop::sample::Index>(), 0_usize..40, bytes)
        .prop_map(|(at, length, bytes)| (at.index(1 << 20), length, bytes))
}

fn changed(raw: &[u8], changes: &[(usize, usize, Vec<u8>)]) -> Vec<u8> {
    let mut raw = raw.to_vec();
    for (at, length, bytes) in changes {
        let at = at % (raw.len() + 1);
        let end = (at + length).min(raw.len());
        raw.splice(at..end, bytes.iter().copied());
    }
    raw
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_message_decides_nothing(which in any::<prop::sample::Index>(), changes in proptest::collection::vec(change(), 1..5)) {
        let raw = changed(&QUESTIONS[which.index(QUESTIONS.len())], &changes);
        prop_assert_eq!(sorted(&raw), ReplyDecision::Undecided);
    }

    #[test]
    fn any_bytes_are_sorted(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(sorted(&bytes), ReplyDecision::Undecided);
    }

    #[test]
    fn any_html_is_read(html in "(<(/?(div|p|b|a|table|td|caption|select|svg|math|template|blockquote|style|script)( style=\"[a-z:;0-9#%-]{0,20}\")?)>|[a-z &;<\"']{0,8}){0,30}") {
        let mail = Mail::html(&html);
        prop_assert_eq!(sorted(&mail.raw()), ReplyDecision::Undecided);
    }

    #[test]
    fn any_text_is_read(text in "(> |On |wrote:|\n|[a-z]{1,6}| |--|From: |2024|@|<|\u{200b}|\u{202e}|é){0,60}") {
        prop_assert_eq!(sorted(&Mail::plain(&text).raw()), ReplyDecision::Undecided);
    }
}
