//! What `switchward doctor` finds at one server, compared with `expected/`.

use crate::support::{entry, same};
use std::path::Path;
use std::time::Duration;
use switchward_messages::cli::doctor::{self, certificate, machine, mail, redis, secrets, test_mail};

#[test]
fn what_doctor_finds_at_a_server_is_rendered() {
    let made = [configuration(), disk(), resources(), certificates(), keys(), deliveries()];
    same(&made.concat(), include_str!("../../expected/command_line/doctor.txt"));
}

#[test]
fn what_doctor_finds_about_mail_is_rendered() {
    let made = [settings(), records(), sent()];
    same(&made.concat(), include_str!("../../expected/command_line/doctor_mail.txt"));
}

fn configuration() -> String {
    use doctor::*;
    let unread = ["SWITCHWARD_LOGS".to_owned(), "SWITCHWARD_X".into()];
    [
        entry("configuration", &[&valid_file(Path::new("a.toml")), VALID_WITHOUT_FILE, SEE_ALL_SETTINGS]),
        entry("variables", &[&ignored_variables(&unread), CORRECT_VARIABLE]),
        entry("tenants", &[&readable_keys("2 tenants"), SEE_TENANTS]),
        entry("totals", &[ALL_PASSED, &none_failed("1 warning"), &some_failed(2, "9 checks", "1 warning")]),
    ]
    .concat()
}

fn disk() -> String {
    use machine::*;
    let data = Path::new("/srv/data");
    let took = Duration::from_micros(1_250);
    let (writable, missing) = (
        data_folder(data, DataFolder::Writable, Some("ext4"), took),
        data_folder(data, DataFolder::Missing, None, took),
    );
    let space = free_space(300, 256);
    [
        entry("folder", &[&writable, &missing, &no_parent_folder(data), CREATE_FOLDER]),
        entry("access", &[&open_to_others("/srv/data", 0o755), CLOSE_FOLDER, CLOSE_NEW_FOLDER]),
        entry("in use", &[&used_by_server("/srv/data"), STOP_OTHER_SERVER]),
        entry("slow", &[&use_local_disk("nfs4"), USE_FASTER_DISK]),
        entry("write", &[&not_writable(data, &"permission denied"), FREE_SPACE, RAISE_DISK_QUOTA]),
        entry("remedies of writes", &[CHANGE_OWNER, MOUNT_WRITABLE, CHECK_DISK]),
        entry("space", &[&space, &unknown_space(data, &"no such device"), CHECK_WITH_DF]),
        entry("little space", &[FREE_SPACE_OR_LOWER_MINIMUM, FREE_SPACE_SOON]),
        entry("inodes", &[&few_inodes("300 MiB free", 9), FREE_INODES]),
    ]
    .concat()
}

fn resources() -> String {
    use machine::*;
    let clocks = [
        ClockComparison::OffRedis(1_200),
        ClockComparison::MatchesRedis,
        ClockComparison::Synchronised,
        ClockComparison::Alone,
    ]
    .map(|comparison| clock("2026-01-05 09:00:00 UTC", comparison));
    let clocks = clocks.each_ref().map(String::as_str);
    let address = &"127.0.0.1:7400";
    [
        entry("memory", &[&enough_memory(512, 2_048), &not_enough_memory(512, 256), LOWER_MEMORY]),
        entry("unknown memory", &[&unknown_memory(512), CHECK_WITH_FREE]),
        entry("port", &[&port_free(address), &port_in_use(address), PORT_OF_RUNNING_SERVER]),
        entry("no port", &[&failed_to_listen(address, &"permission denied"), SET_OTHER_ADDRESS]),
        entry("files", &[&limit_of_files(1_024), &allow_files(8_192), NO_LIMIT_OF_FILES]),
        entry("unknown files", &[UNKNOWN_LIMIT_OF_FILES, CHECK_WITH_ULIMIT]),
        entry("clock", &clocks),
        entry("unknown clock", &[UNKNOWN_TIME, SYNCHRONISE_CLOCKS]),
    ]
    .concat()
}

fn certificates() -> String {
    use certificate::*;
    let (file, authority) = (Path::new("tls.crt"), Path::new("ca.crt"));
    let hosts = ["a.example".to_owned(), "127.0.0.1".into()];
    [
        entry("certificate", &[&with_hosts(&valid_until(file, "2026-12-31"), &hosts), REPLACE_SOON]),
        entry("dates", &[&not_valid_today(file, "2025-01-01", "2025-12-31"), REPLACE_NOW]),
        entry(
            "no certificate",
            &[USE_MATCHING_FILES, &unparsable(file), &unreadable_dates(file), CHECK_VALIDITY],
        ),
        entry("host", &[&without_host(file), NAME_HOST]),
        entry("issuer", &[&unknown_issuer(file), ADD_ISSUER]),
        entry("authority", &[&of_authority(file), ISSUE_SERVER_CERTIFICATE]),
        entry("refusal", &[&refused(file, &"bad signature"), GET_NEW]),
        entry("member", &[&with_cluster("server.crt is valid until 2026-12-31", &"server-2", &"3f")]),
        entry("other authority", &[&of_other_authority(file, authority, &"unknown issuer")]),
    ]
    .concat()
}

fn keys() -> String {
    use secrets::*;
    let files = [open_file(Path::new("a.key"), 0o644), open_file(Path::new("b.key"), 0o604)];
    let ring = Path::new("/etc/switchward/keys");
    let left = ["/etc/.new-a1b2c3".to_owned(), "/etc/.new-d4e5f6".into()];
    [
        entry("open files", &[&open_files(&files), CLOSE_FILE, CLOSE_CONTEXT]),
        entry("mounted files", &[&open_mounted_files(&files), RESTRICT_FOLDER]),
        entry(
            "incomplete files",
            &[&incomplete_files(&left, 0), &incomplete_files(&left, 3), DELETE_INCOMPLETE],
        ),
        entry("key ring", &[&current_key(&"1a2b", Some(ring), 2), &current_key(&"1a2b", None, 0)]),
        entry("no key ring", &[NO_KEY_RING, CREATE_AND_SET_KEY_RING, CREATE_KEY_RING]),
    ]
    .concat()
}

fn deliveries() -> String {
    use redis::*;
    let version = version("redis://a", "7.0.15");
    let kinds = [Persistence::Persistent, Persistence::Memory].map(|it| persistence(&version, it));
    [
        entry("redis", &[&kinds[0], &kinds[1], NOT_CONFIGURED]),
        entry("wrong redis", &[NEWER_NEEDED, &replica(&version), NAME_PRIMARY]),
        entry("eviction", &[&evicts(&version, "allkeys-lru"), SET_NOEVICTION]),
        entry("unreachable redis", &[WRITE_PASSWORD, DELIVERIES_WAIT]),
    ]
    .concat()
}

fn settings() -> String {
    use mail::*;
    let senders = ["a@a.example".to_owned(), "b@a.example".into()];
    let mailbox = mailbox("INBOX", "kim", "imap.a.example", &12);
    let (issuer, page) = ("https://id.example", &"https://id.example/sign-in");
    [
        entry("settings", &[NOT_CONFIGURED, SEE_MAIL, SEE_MAIL_IN, SEE_SMTP, SEE_OIDC, SET_DNS, CHECK_FROM]),
        entry("smtp", &[&smtp_accepts("smtp.a.example", &senders), CHECK_SMTP_AND_SENDERS]),
        entry("provider", &[&provider(issuer, page, "2 keys"), CHECK_ISSUER]),
        entry("provider without keys", &[&provider_without_keys(issuer, page), PUBLISH_KEYS]),
        entry("mailbox", &[&missing_folders(&mailbox, &["Done", "Other"]), CHECK_IMAP]),
        entry("mailbox without idle", &[&without_idle(&mailbox), &polls(30)]),
    ]
    .concat()
}

fn records() -> String {
    use mail::*;
    let domain = "a.example";
    let (key, why) = ("s._domainkey.a.example", &"another key");
    [
        entry("spf", &[&spf(domain), &no_spf(domain), &publish_spf(domain)]),
        entry("dmarc", &[&dmarc(domain), &no_dmarc(domain), &publish_dmarc(domain)]),
        entry("unusable record", &[&unusable_record(&no_dmarc(domain), why)]),
        entry("dkim", &[&dkim(key), NO_DKIM_KEY, SIGNED_MAIL]),
        entry("wrong dkim", &[&no_dkim(key), PUBLISH_DKIM, &other_dkim(key, why), CORRECT_DKIM]),
        entry("mx", &[&mx(domain, &["mx.a.example".to_owned()]), &no_mx(domain), &publish_mx(domain)]),
    ]
    .concat()
}

fn sent() -> String {
    use test_mail::*;
    let hosts = ["mx1.a.example".to_owned(), "mx2.a.example".into()];
    let fields = [ForgedFields::Below, ForgedFields::Trusted, ForgedFields::Ignored]
        .map(|fields| fields_kept(&hosts, fields));
    [
        entry("test mail", &[TEXT, &fields_removed(&hosts)]),
        entry("forged fields", &[&fields[0], REMOVE_FIELDS, &fields[1], DO_NOT_TRUST, &fields[2]]),
        entry("no test mail", &[NO_REPLY_ADDRESS, SET_REPLY_ADDRESS, HTTP_ONLY, SEND_YOURSELF, CHECK_SMTP]),
        entry(
            "not arrived",
            &[&not_arrived("r@a.example", Duration::from_secs(60)), CHECK_DELIVERY, CHECK_IMAP],
        ),
        entry("address", &[&address_in_use(&"127.0.0.1:2424"), STOP_SERVER, SET_LMTP]),
    ]
    .concat()
}
