//! What needs no server: settings, words, receipts.

use ::redis::parse_redis_value;

use crate::bus::Receipt;
use crate::limits::{IDLE_MS, SILENCE_MS};
use crate::redis::entry::of_receipt;
use crate::redis::fault::{Fault, What};
use crate::redis::{OpenError, Redis, RedisConfig};

async fn refused(url: &str, prefix: &str) -> OpenError {
    let config = RedisConfig { prefix: prefix.to_owned(), ..RedisConfig::new(url.to_owned()) };
    Redis::open(config).await.err().unwrap_or_else(|| panic!("{url} {prefix} can be used"))
}

#[tokio::test]
async fn addresses_and_prefixes_that_cannot_be_used_are_refused_without_their_secrets() {
    for url in [
        "",
        "127.0.0.1:6379",
        "http://127.0.0.1:6379",
        "redis://:hunter2@127.0.0.1:6379",
        "redis://user:hunter2@127.0.0.1:6379",
        "redis://:hunter2@127.0.0.1:none",
        "rediss://127.0.0.1:6379/#insecure",
        "redis://127.0.0.1:6379/hunter2",
    ] {
        let error = refused(url, "switchward").await;
        assert!(matches!(error, OpenError::Address(_)), "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    for prefix in ["", "a b", "{a}", "ä", &"a".repeat(65)] {
        assert_eq!(refused("redis://127.0.0.1:1", prefix).await, OpenError::Prefix, "{prefix}");
    }
}

#[test]
fn a_configuration_that_is_printed_keeps_the_password() {
    let mut config = RedisConfig::new("redis://127.0.0.1:6379".to_owned());
    config.password = Some("hunter2".to_owned());
    let shown = format!("{config:?}");
    assert!(shown.contains("127.0.0.1") && !shown.contains("hunter2"), "{shown}");
}

/// What a server says, and what is made of it.
#[test]
fn answers_of_redis_are_distinguished() {
    for (line, word, what) in [
        ("-READONLY You can't write against a read only replica.", "READONLY", What::Unfit),
        ("-OOM command not allowed when used memory > 'maxmemory'.", "OOM", What::Server),
        ("-LOADING Redis is loading the dataset in memory", "LOADING", What::Server),
        ("-NOAUTH Authentication required.", "NOAUTH", What::Password),
        ("-WRONGPASS invalid username-password pair", "WRONGPASS", What::Password),
        ("-NOPERM this user has no permissions", "NOPERM", What::Server),
        ("-NOSCRIPT No matching script.", "NOSCRIPT", What::Server),
        ("-MISCONF Redis is configured to save RDB snapshots", "MISCONF", What::Server),
        ("-BUSY Redis is busy running a script.", "BUSY", What::Server),
        ("-WRONGTYPE Operation against a key", "WRONGTYPE", What::Server),
        ("-MASTERDOWN Link with MASTER is down", "MASTERDOWN", What::Unfit),
        ("-MOVED 3999 127.0.0.1:6381", "Cluster", What::Server),
        ("-NOGROUP No such key", "NOGROUP", What::Group),
        ("-UNBLOCKED the stream key no longer exists", "NOGROUP", What::Group),
        ("-ERR max number of clients reached", "maximum number of clients", What::Lost),
        ("-ERR unknown command", "version 7.0", What::Server),
    ] {
        let value = parse_redis_value(format!("{line}\r\n").as_bytes()).unwrap();
        let fault = Fault::read(&value.extract_error().unwrap_err());
        assert!(fault.message.contains(word), "{line}: {}", fault.message);
        assert_eq!(fault.what, what, "{line}");
    }
}

#[test]
fn receipts_of_others_are_none() {
    let read = |words: &str| {
        let receipt = Receipt::new(words.to_owned());
        of_receipt(&receipt).map(|it| (it.entry.to_owned(), it.bytes, it.id.to_owned()))
    };
    assert_eq!(read("17-0/5/7/a-1"), Some(("17-0".to_owned(), 5, "7/a-1".to_owned())));
    assert_eq!(read("17-0/0/"), Some(("17-0".to_owned(), 0, String::new())));
    let huge = format!("1-{}0/1/a", u64::MAX);
    for words in [
        "", "1", "0-0", "1-1/", "1-1/1", "/1/a", "-/1/a", "1-/1/a", "+1-0/1/a", "1-0/+1/a", "1-0/-1/a",
        "a-0/1/a", "*/1/a", &huge,
    ] {
        assert_eq!(read(words), None, "{words}");
    }
}

/// Two signs of life in a row may be lost.
const _: () = assert!(IDLE_MS > 3 * SILENCE_MS);
