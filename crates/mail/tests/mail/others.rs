//! Public collections of messages, fetched by name and version; they are not in this tree.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;

use mail_parser::MessageParser;
use switchward_mail::incoming::{Authentication, Envelope, Sorted, sort};

use crate::harness::{HARNESS, Mail, Seen};
use crate::shapes::alternative;

/// A source package of a Python project, unpacked. Kept between runs.
fn fetched(package: &str, version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{package}-{version}"));
    if !folder.join("done").exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let wanted = format!("{package}=={version}");
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            ":all:",
        ]);
        let status = pip.arg("--dest").arg(&folder).arg(&wanted).status().unwrap();
        assert!(status.success(), "{wanted} cannot be fetched");
        let archive =
            files(&folder).into_iter().find(|path| path.extension().is_some_and(|end| end == "gz")).unwrap();
        let status = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(&folder).status().unwrap();
        assert!(status.success(), "{wanted} cannot be unpacked");
        std::fs::write(folder.join("done"), "").unwrap();
    }
    folder
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn every_bounce_that_others_collected_is_a_machines() {
    let folder = fetched("flufl.bounce", "6.0.0");
    let bounces: Vec<PathBuf> = files(&folder)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("/tests/data/"))
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    let (mut count, mut persons) = (0, Vec::new());
    for path in &bounces {
        let raw = std::fs::read(path).unwrap();
        let Seen { sorted, proofs } = Seen::of(&raw, &Default::default(), &HARNESS.settings).await;
        assert!(!proofs.iter().any(Authentication::is_signed), "{}", path.display());
        count += 1;
        let machine = matches!(sorted, Sorted::Bounce(_) | Sorted::Machine { .. });
        if let (false, Some(name)) = (machine, path.file_name()) {
            let words = match sorted {
                Sorted::Reply(reply) => format!("reply: {:.60}", reply.text),
                Sorted::Unusable { reason } => reason.word().to_owned(),
                Sorted::Machine { .. } | Sorted::Bounce(_) => String::new(),
            };
            persons.push(format!("{} ({words:?})", name.to_string_lossy()));
        }
    }
    println!("{count} bounces, {} of them are not known as such", persons.len());
    assert!(count >= 100, "{count}");
    // With the null sender each is read as what a machine wrote about a mail that did not arrive.
    let null = Envelope { sender: Some(String::new()), ..Envelope::default() };
    let unread = bounces.iter().filter(|path| {
        let sorted = sort(&std::fs::read(path).unwrap(), &null, &HARNESS.settings);
        !matches!(sorted, Sorted::Bounce(_) | Sorted::Machine { .. })
    });
    assert_eq!(unread.count(), 0);
    // This one is a negative example: a mail about a reservation.
    persons.retain(|name| !name.starts_with("groupwise_03.txt (\"reply"));
    assert!(persons.is_empty(), "{}", persons.join("\n"));
}

/// The first line of what is read as the sender's own.
fn first_line(sorted: &Sorted) -> String {
    match sorted {
        Sorted::Reply(reply) => reply.text.lines().next().unwrap_or_default().to_owned(),
        Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. } => format!("{sorted:?}"),
    }
}

#[test]
fn replies_that_others_collected_keep_their_first_line() {
    let folder = fetched("talon", "1.4.4");
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files(&folder) {
        let (name, raw) = (path.to_string_lossy(), std::fs::read(&path).unwrap());
        let (sorted, begins) = if name.contains("/standard_replies/") && name.ends_with(".eml") {
            // Some have lost their id in the collection.
            let known = raw.to_ascii_lowercase().windows(12).any(|at| at == b"\nmessage-id:");
            let raw = if known { raw } else { [b"Message-ID: <x@y.example>\n", &raw[..]].concat() };
            (sort(&raw, &Default::default(), &HARNESS.settings), "Hello")
        } else if name.contains("/html_replies/") && name.ends_with(".html") {
            (Mail::html(&String::from_utf8_lossy(&raw)).sorted(), "Hi. I am fine.")
        } else {
            continue;
        };
        count += 1;
        let first = first_line(&sorted);
        // This one was changed: its plain text says "Hello", and its HTML "Allo! Follow up MIME!".
        let differs = name.ends_with("/standard_replies/outlook.eml");
        if if differs { !first.is_empty() } else { !first.starts_with(begins) } {
            wrong.push(format!("{name}: {first:?}"));
        }
    }
    println!("{count} replies of others, {} without their first line", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 20, "{count}");
}

/// A collected reply, with these words in place of its own.
pub(crate) type Rewritten = Box<dyn Fn(&str) -> Mail>;

/// Replies that others collected, by collection: of whole messages the parts that are text, as our own message.
pub(crate) fn replies() -> Vec<(&'static str, Vec<Rewritten>)> {
    let (mut whole, mut pages): (Vec<Rewritten>, Vec<Rewritten>) = (Vec::new(), Vec::new());
    for path in files(&fetched("talon", "1.4.4")) {
        let (name, raw) = (path.to_string_lossy(), std::fs::read(&path).unwrap());
        // This one was changed: its plain text differs from its HTML.
        if name.ends_with("/standard_replies/outlook.eml") {
            continue;
        }
        if name.contains("/standard_replies/") && name.ends_with(".eml") {
            whole.extend(rewritten(&raw));
        } else if name.contains("/html_replies/") && name.ends_with(".html") {
            let html = String::from_utf8_lossy(&raw).into_owned();
            pages.push(Box::new(move |own| Mail::html(&html.replacen("Hi. I am fine.", own, 1))));
        }
    }
    vec![("talon, whole replies", whole), ("talon, pages of HTML", pages)]
}

/// `None` if the words differ between its parts.
fn rewritten(raw: &[u8]) -> Option<Rewritten> {
    let message = MessageParser::new().parse(raw)?;
    let text = |found: Option<Cow<'_, str>>| found.map(|text| text.replace("\r\n", "\n"));
    let plain = message.text_part(0).filter(|part| part.is_text() && !part.is_text_html());
    let plain = plain.and(text(message.body_text(0)));
    let html = message.html_part(0).filter(|part| part.is_text_html()).and(text(message.body_html(0)));
    let all = [&plain, &html].into_iter().flatten().all(|text| text.contains("Hello"));
    let with = |text: &str, own: &str| text.replacen("Hello", own, 1);
    match (plain, html) {
        (Some(plain), Some(html)) if all => {
            Some(Box::new(move |own| alternative(&with(&plain, own), &with(&html, own))))
        }
        (Some(plain), None) if all => Some(Box::new(move |own| Mail::plain(&with(&plain, own)))),
        (None, Some(html)) if all => Some(Box::new(move |own| Mail::html(&with(&html, own)))),
        _ => None,
    }
}
