//! Conversations with a mailbox: a server that says what a test needs, and what is done with what it has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchward_mail::imap::{Account, Collect, Health, ImapError, ImapTls, MailOutcome, Pace, probe, read};
use switchward_mail::limits::{IMAP_ATTEMPTS_MAX, IMAP_ROUND_MESSAGES_MAX, MESSAGE_BYTES_MAX};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};

/// A message of the mailbox.
#[derive(Clone, Default)]
struct Message {
    text: String,
    /// The size that the server reports, if it is wrong.
    size: Option<usize>,
    /// How often the server hangs up when it is asked for.
    hangs: u32,
    flags: String,
}

/// A mailbox.
#[derive(Clone, Default)]
struct Mailbox {
    able: &'static str,
    validity: u32,
    inbox: BTreeMap<u32, Message>,
    folders: BTreeMap<String, Vec<String>>,
    said: Vec<String>,
    /// A message that arrives during this command, whose answer announces it and does not find it.
    late: Option<(&'static str, &'static str)>,
    /// What the folder becomes when a message has made the server hang up.
    after: Option<Box<Mailbox>>,
}

type Shared = Arc<Mutex<Mailbox>>;

/// Answers one command; false: hang up.
fn answer(mailbox: &mut Mailbox, tag: &str, words: &[&str]) -> Option<String> {
    let uid = || words.get(2).and_then(|uid| uid.parse::<u32>().ok()).unwrap_or_default();
    let command = words[0].to_ascii_uppercase();
    let ok = |data: String| Some(format!("{data}{tag} OK done\r\n"));
    match (command.as_str(), words.get(1).map(|word| word.to_ascii_uppercase()).as_deref()) {
        ("CAPABILITY", _) => ok(format!("* CAPABILITY IMAP4rev1 {}\r\n", mailbox.able)),
        ("STARTTLS", _) => Some(format!("{tag} NO not here\r\n")),
        ("LOGIN", Some("\"WRONG\"")) => Some(format!("{tag} NO who?\r\n")),
        ("SELECT" | "EXAMINE", Some("\"NONE\"")) => Some(format!("{tag} NO no such folder\r\n")),
        ("SELECT" | "EXAMINE", _) => {
            let (exists, validity) = (mailbox.inbox.len(), mailbox.validity);
            ok(format!("* {exists} EXISTS\r\n* OK [UIDVALIDITY {validity}] fine\r\n"))
        }
        ("LIST", _) => {
            let name = words[2].trim_matches('"');
            let there = mailbox.folders.contains_key(name);
            ok(if there { format!("* LIST () \"/\" {name}\r\n") } else { String::new() })
        }
        ("CREATE", Some(_)) => {
            mailbox.folders.insert(words[1].trim_matches('"').to_owned(), Vec::new());
            ok(String::new())
        }
        ("UID", Some("SEARCH")) => {
            let unseen = mailbox.inbox.iter().filter(|(_, it)| !it.flags.contains("Seen"));
            let uids: Vec<String> = unseen.map(|(uid, _)| uid.to_string()).collect();
            ok(format!("* SEARCH {}\r\n", uids.join(" ")))
        }
        ("UID", Some("FETCH")) => fetch(mailbox, uid(), words[3..].join(" ").contains("BODY")).and_then(ok),
        ("UID", Some("STORE")) => {
            let message = mailbox.inbox.get_mut(&uid()).expect("the message is there");
            message.flags.push_str(&words[4..].join(" "));
            ok(String::new())
        }
        ("UID", Some("MOVE" | "COPY")) => {
            let text = mailbox.inbox[&uid()].text.clone();
            mailbox.folders.entry(words[3].trim_matches('"').to_owned()).or_default().push(text);
            if words[1].eq_ignore_ascii_case("MOVE") {
                mailbox.inbox.remove(&uid());
            }
            ok(String::new())
        }
        ("UID", Some("EXPUNGE")) => {
            assert!(mailbox.inbox[&uid()].flags.contains("\\Deleted"), "the message was marked");
            mailbox.inbox.remove(&uid());
            ok(String::new())
        }
        _ => ok(String::new()),
    }
}

/// The answer about a message, or about its size; `None`: hang up.
fn fetch(mailbox: &mut Mailbox, uid: u32, whole: bool) -> Option<String> {
    let message = mailbox.inbox.get_mut(&uid).expect("the message is there");
    let size = message.size.unwrap_or(message.text.len());
    if !whole {
        return Some(format!("* 1 FETCH (UID {uid} RFC822.SIZE {size})\r\n"));
    }
    if message.hangs > 0 {
        message.hangs -= 1;
        let gone = message.hangs == 0;
        if let Some(after) = mailbox.after.take_if(|_| gone) {
            *mailbox = *after;
        }
        return None;
    }
    let (length, text) = (message.text.len(), &message.text);
    Some(format!("* 1 FETCH (UID {uid} BODY[]<0> {{{length}}}\r\n{text})\r\n"))
}

/// The answer to a command, while which a message comes that it was not looked for.
fn with_late(mailbox: &mut Mailbox, words: &[&str], answer: String) -> String {
    let during = |(command, _): &mut (&str, &str)| words[1..].iter().any(|word| word == command);
    let Some((_, text)) = mailbox.late.take_if(during) else { return answer };
    let uid = mailbox.inbox.keys().last().map_or(1, |uid| uid + 1);
    mailbox.inbox.insert(uid, Message { text: text.to_owned(), ..Message::default() });
    format!("* {} EXISTS\r\n{answer}", mailbox.inbox.len())
}

async fn converse(stream: TcpStream, mailbox: Shared) {
    let mut stream = BufReader::new(stream);
    if stream.write_all(b"* OK ready\r\n").await.is_err() {
        return;
    }
    let (mut line, mut idles) = (String::new(), None);
    while matches!(stream.read_line(&mut line).await, Ok(read) if read > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = if words == ["DONE"] {
            idles.take().map(|tag: String| format!("{tag} OK done\r\n"))
        } else if words[1..] == ["IDLE"] {
            idles = Some(words[0].to_owned());
            Some("+ idling\r\n".to_owned())
        } else {
            let mut mailbox = mailbox.lock().unwrap();
            mailbox.said.push(words[1..].join(" "));
            answer(&mut mailbox, words[0], &words[1..]).map(|answer| with_late(&mut mailbox, &words, answer))
        };
        let Some(answer) = answer else { return };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        line.clear();
    }
}

/// Keeps what comes, and files each message as its text asks for.
struct Taker(mpsc::UnboundedSender<String>, Notify);

impl Collect for Taker {
    async fn collect(&self, raw: Vec<u8>) -> MailOutcome {
        let text = String::from_utf8(raw).unwrap();
        // A slow one takes until another was taken; a patient one lets others go first.
        if text.contains("slow") {
            self.1.notified().await;
        } else if text.contains("patient") {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        } else {
            self.1.notify_one();
        }
        // The test may have ended.
        let _ = self.0.send(text.clone());
        match text {
            text if text.contains("later") => MailOutcome::Later,
            text if text.contains("odd") => MailOutcome::Quarantine,
            _ => MailOutcome::Done,
        }
    }

    fn unread(&self, why: &'static str) {
        let _ = self.0.send(format!("unread: {why}"));
    }
}

async fn listen(mailbox: Mailbox) -> (Account, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mailbox = Arc::new(Mutex::new(mailbox));
    let shared = mailbox.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, shared.clone()));
        }
    });
    let short = Duration::from_millis(5);
    let account = Account {
        host: "127.0.0.1".into(),
        port,
        tls: ImapTls::None,
        user: "a".into(),
        password: "b".into(),
        folder: "INBOX".into(),
        done_folder: Some("Done".into()),
        quarantine_folder: Some("Odd".into()),
        pace: Pace { poll: short, again_min: short, again_max: short },
    };
    (account, mailbox)
}

fn mailbox(able: &'static str, texts: &[&str]) -> Mailbox {
    let message = |text: &&str| Message { text: (*text).to_owned(), ..Message::default() };
    let inbox = (1..).zip(texts.iter().map(message)).collect();
    Mailbox { able, validity: 1, inbox, ..Mailbox::default() }
}

/// Reads until this many messages were collected. Returns them, the mailbox and the number of failures.
async fn collect_messages(mailbox: Mailbox, count: usize) -> (Vec<String>, Mailbox, u64) {
    let (account, mailbox) = listen(mailbox).await;
    let (send, mut received) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let health = Arc::new(Health::default());
    let reading = tokio::spawn(read(account, Arc::new(Taker(send, Notify::new())), health.clone(), stopped));
    let mut texts = Vec::new();
    while texts.len() < count {
        let text = tokio::time::timeout(Duration::from_secs(20), received.recv()).await;
        texts.push(text.expect("the message is taken").expect("the mailbox is being read"));
    }
    // After one more round only postponed messages are unseen.
    let rounds =
        |it: &Shared| it.lock().unwrap().said.iter().filter(|it| it.starts_with("UID SEARCH")).count();
    let before = rounds(&mailbox);
    let another = async {
        while rounds(&mailbox) < before + 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), another).await.expect("there is another round");
    assert!(health.connected(), "the mailbox is being read");
    stop.send_replace(true);
    reading.await.unwrap();
    assert!(!health.connected(), "the mailbox is no longer being read");
    let mailbox = mailbox.lock().unwrap().clone();
    (texts, mailbox, health.failures())
}

#[tokio::test]
async fn each_message_goes_where_it_belongs() {
    let (texts, mailbox, failures) =
        collect_messages(mailbox("MOVE", &["yes", "odd", "later", "no"]), 5).await;
    assert_eq!(texts, ["yes", "odd", "later", "no", "later"], "a deferred message comes again");
    assert_eq!(mailbox.folders["Done"], ["yes", "no"]);
    assert_eq!(mailbox.folders["Odd"], ["odd"]);
    let left: Vec<_> = mailbox.inbox.values().map(|it| (it.text.as_str(), it.flags.as_str())).collect();
    assert_eq!(left, [("later", "")]);
    assert_eq!(failures, 0);
    assert!(mailbox.said.contains(&"CREATE \"Done\"".to_owned()), "the folders were made");
}

#[tokio::test]
async fn what_comes_while_a_command_is_answered_is_not_waited_for() {
    for (texts, command) in [
        (&["yes"][..], "SEARCH"),
        (&["yes"], "STORE"),
        (&["yes"], "MOVE"),
        (&[], "SEARCH"),
        // One that could not be taken must not keep the next one waiting.
        (&["later"], "SEARCH"),
    ] {
        let late = Some((command, "late"));
        let (mut account, _) = listen(Mailbox { late, ..mailbox("IDLE MOVE", texts) }).await;
        let long = Duration::from_secs(3_600);
        account.pace = Pace { poll: long, again_min: long, again_max: long };
        let (send, mut received) = mpsc::unbounded_channel();
        let (_stop, stopped) = watch::channel(false);
        let taker = Arc::new(Taker(send, Notify::new()));
        let reading = tokio::spawn(read(account, taker, Arc::new(Health::default()), stopped));
        for text in texts.iter().chain(&["late"]) {
            let taken = tokio::time::timeout(Duration::from_secs(20), received.recv()).await;
            assert_eq!(taken.expect("the message is taken").as_deref(), Some(*text), "{command}");
        }
        reading.abort();
    }
}

/// Reads with long waits after messages that could not be taken, until `wanted` messages with this text were taken. `then`
/// is done after the first message.
async fn taken_meanwhile(mailbox: Mailbox, text: &str, wanted: usize, then: impl FnOnce(&mut Mailbox)) {
    let (mut account, mailbox) = listen(mailbox).await;
    let long = Duration::from_secs(3_600);
    account.pace = Pace { again_min: long, again_max: long, ..account.pace };
    let (send, mut received) = mpsc::unbounded_channel();
    let (_stop, stopped) = watch::channel(false);
    let taker = Arc::new(Taker(send, Notify::new()));
    let reading = tokio::spawn(read(account, taker, Arc::new(Health::default()), stopped));
    let (mut taken, mut then) = (0, Some(then));
    while taken < wanted {
        let one = tokio::time::timeout(Duration::from_secs(20), received.recv()).await;
        taken += usize::from(one.expect("the message is taken").as_deref() == Some(text));
        if let Some(then) = then.take() {
            then(&mut mailbox.lock().unwrap());
        }
    }
    reading.abort();
}

#[tokio::test]
async fn one_that_could_not_be_taken_does_not_change_how_often_a_server_that_announces_nothing_is_asked() {
    let late = Message { text: "yes".to_owned(), ..Message::default() };
    taken_meanwhile(mailbox("MOVE", &["later"]), "yes", 1, |mailbox| {
        mailbox.inbox.insert(2, late);
    })
    .await;
}

#[tokio::test]
async fn many_are_taken_at_once_though_one_of_them_could_not_be_taken() {
    let many = IMAP_ROUND_MESSAGES_MAX + 10;
    let texts: Vec<&str> = std::iter::once("later").chain(std::iter::repeat_n("yes", many)).collect();
    taken_meanwhile(mailbox("IDLE MOVE", &texts), "yes", many, |_| {}).await;
}

#[tokio::test]
async fn one_that_takes_long_holds_up_no_other() {
    let (texts, mailbox, failures) = collect_messages(mailbox("MOVE", &["slow", "odd", "yes"]), 3).await;
    assert_eq!((texts.len(), texts.contains(&"slow".to_owned()), failures), (3, true, 0));
    assert_ne!(texts[0], "slow");
    assert!(mailbox.inbox.is_empty(), "{:?}", mailbox.inbox.keys());
}

#[tokio::test]
async fn the_messages_of_one_sender_are_taken_in_their_order() {
    let of = |from: &str, text: &str| format!("From: {from}@a.example\r\n\r\n{text}");
    let sent = [of("ann", "patient approve"), of("bob", "yes"), of("Ann", "reject")];
    let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
    let (texts, ..) = collect_messages(mailbox("MOVE", &sent), 3).await;
    assert_eq!(texts, [sent[1], sent[0], sent[2]]);
}

#[tokio::test]
async fn a_server_that_cannot_move_is_asked_to_copy() {
    for (able, left) in [("UIDPLUS", 0), ("", 1)] {
        let (_, mailbox, _) = collect_messages(mailbox(able, &["yes"]), 1).await;
        assert_eq!(mailbox.folders["Done"], ["yes"], "{able}");
        assert_eq!(mailbox.inbox.len(), left, "without UIDPLUS, messages of others could be expunged");
        assert!(mailbox.inbox.values().all(|it| it.flags.contains("Deleted")));
    }
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let mut mailbox = mailbox("MOVE", &["huge", "yes"]);
    mailbox.inbox.get_mut(&1).unwrap().size = Some(MESSAGE_BYTES_MAX + 1);
    let (texts, mailbox, _) = collect_messages(mailbox, 2).await;
    assert_eq!(texts, ["unread: too_large", "yes"]);
    assert_eq!(mailbox.folders["Odd"], ["huge"]);
    assert!(!mailbox.said.iter().any(|it| it.starts_with("UID FETCH 1 ") && it.contains("BODY")));
}

#[tokio::test]
async fn what_breaks_the_conversation_stops_no_other() {
    let mut mailbox = mailbox("MOVE", &["poison", "yes"]);
    mailbox.inbox.get_mut(&1).unwrap().hangs = u32::MAX;
    let (texts, mailbox, failures) = collect_messages(mailbox, 2).await;
    assert_eq!(texts, ["unread: unreadable", "yes"]);
    assert_eq!(mailbox.folders["Odd"], ["poison"]);
    assert_eq!(
        failures,
        u64::from(IMAP_ATTEMPTS_MAX),
        "the message was tried, and the server asked again each time"
    );
}

#[tokio::test]
async fn a_folder_that_was_made_again_begins_again() {
    let mut old = mailbox("MOVE", &["poison"]);
    old.inbox.get_mut(&1).unwrap().hangs = IMAP_ATTEMPTS_MAX;
    old.after = Some(Box::new(Mailbox { validity: 2, ..mailbox("MOVE", &["yes"]) }));
    let (texts, mailbox, _) = collect_messages(old, 1).await;
    assert_eq!(texts, ["yes"], "the number belonged to another message");
    assert_eq!(mailbox.folders["Done"], ["yes"]);
}

#[tokio::test]
async fn nobody_logs_in_where_nothing_hides_it() {
    let (mut account, mailbox) = listen(mailbox("STARTTLS", &[])).await;
    account.tls = ImapTls::StartTls;
    assert!(matches!(probe(&account).await, Err(ImapError::Broken("begin TLS", _))));
    assert_eq!(mailbox.lock().unwrap().said, ["STARTTLS"]);
}

#[tokio::test]
async fn a_probe_says_what_is_wrong_and_changes_nothing() {
    let (account, mailbox) = listen(mailbox("IDLE", &["yes"])).await;
    mailbox.lock().unwrap().folders.insert("Odd".into(), Vec::new());
    let found = probe(&account).await.unwrap();
    assert_eq!((found.messages, found.idle), (1, true));
    assert_eq!(found.folders, [("Done".to_owned(), false), ("Odd".to_owned(), true)]);
    let said = mailbox.lock().unwrap().said.clone();
    assert!(!said.iter().any(|it| it.starts_with("SELECT") || it.starts_with("CREATE")), "{said:?}");
    let wrong = Account { user: "WRONG".into(), ..account.clone() };
    assert!(matches!(probe(&wrong).await, Err(ImapError::Login(_, _))));
    let nowhere = Account { folder: "None".into(), ..account.clone() };
    assert!(matches!(probe(&nowhere).await, Err(ImapError::Folder(_, _))));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    drop(silent);
    assert!(matches!(probe(&Account { port, ..account }).await, Err(ImapError::Connect(_, _))));
}
