//! Secrets at rest: a server's files have none in plain text; the key ring decrypts them, can be rotated, and is required.

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use switchward_machine::TenantId;
use switchward_shard::{Cluster, ClusterOptions, MonotonicClock};
use switchward_state::approval::MailKey;
use switchward_state::seal::{RingKey, SecretOf};
use switchward_state::{Key, Row, View as _};
use switchward_store::DataDir;

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, hang_up, private, program, run};

mod reply_tokens;

/// A secret that another system draws.
const OF_STRIPE: &str = "whsec_drawn_by_somebody_else_0123456789";

/// Bytes that are looked at together for zeros.
const BLOCK: usize = 4096;

/// A server of this site that has this ring, or none.
fn server(site: &Site, ring: Option<&str>) -> Command {
    server_on(site, &site.path("data"), ring)
}

/// The same on another data folder.
fn server_on(site: &Site, data: &str, ring: Option<&str>) -> Command {
    let mut command = program();
    command.args(["server", "--config", &site.path("tenants.toml"), "--data-dir", data]);
    command.args(["--listen", "127.0.0.1:0", "--shards", "2", "--log", "info"]);
    command.envs(ring.map(|ring| ("SWITCHWARD_KEYS_FILE", ring)));
    command
}

fn made(site: &Site) -> String {
    let ring = site.path("ring.keys");
    run(["secrets", "create", &ring]).with_code(0);
    ring
}

pub(crate) fn ask(server: &Running, words: &[&str]) -> Ended {
    let mut command = program();
    command.args(words).args(["--address", &server.address, "--api-key", ADMIN_KEY, "-o", "json"]);
    Ended::of(&mut command)
}

fn secret(ended: &Ended) -> String {
    ended.json()["secret"].as_str().filter(|secret| !secret.is_empty()).expect("a secret").to_owned()
}

/// Puts every kind of secret of a webhook in, and gives them as texts.
pub(crate) fn put_in(server: &Running) -> Vec<String> {
    let endpoint = ["endpoint", "put", "ops", "https://ops.example/in"];
    let mut secrets = vec![secret(&ask(server, &endpoint).with_code(0))];
    secrets.push(secret(&ask(server, &["endpoint", "rotate", "ops"]).with_code(0)));
    let source = ["--session", "s", "--event", "paid"];
    let drawn = [&["source", "create", "shop", "--kind", "standard-webhooks"][..], &source].concat();
    secrets.push(secret(&ask(server, &drawn).with_code(0)));
    secrets.push(secret(&ask(server, &["source", "rotate", "shop"]).with_code(0)));
    let given =
        [&["source", "create", "bank", "--kind", "stripe", "--secret", OF_STRIPE][..], &source].concat();
    ask(server, &given).with_code(0);
    secrets.push(OF_STRIPE.to_owned());
    secrets
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A secret in the encodings in which it may have been written.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let texts = [
        BASE64_STANDARD.encode(secret),
        BASE64_STANDARD_NO_PAD.encode(secret),
        BASE64_URL_SAFE_NO_PAD.encode(secret),
        hex.to_uppercase(),
        hex,
    ];
    texts.into_iter().map(String::into_bytes).chain([secret.to_vec()]).collect()
}

/// The bytes of the files of a folder, one character a byte, without preallocated blocks of zeros.
pub(crate) struct Written(Vec<(PathBuf, String)>);

impl Written {
    pub(crate) fn of(folder: &str) -> Self {
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).expect("the test can read it");
            let blocks = bytes.chunks(BLOCK).filter(|block| **block != [0; BLOCK][..block.len()]);
            let text = blocks.flatten().map(|byte| char::from(*byte)).collect();
            (path, text)
        };
        Self(files(Path::new(folder)).into_iter().filter(|path| path.is_file()).map(read).collect())
    }

    /// The files that have a secret in plain text.
    pub(crate) fn holds(&self, secret: &[u8]) -> Vec<String> {
        let forms: Vec<String> =
            forms(secret).iter().map(|form| form.iter().map(|byte| char::from(*byte)).collect()).collect();
        let holds = |text: &String| forms.iter().any(|form| text.contains(form));
        self.0.iter().filter(|(_, text)| holds(text)).map(|(path, _)| path.display().to_string()).collect()
    }
}

/// The whole and the random part of a secret, which follows `whsec_` in base64.
pub(crate) fn parts(text: &str) -> Vec<Vec<u8>> {
    let random = text.strip_prefix("whsec_").and_then(|rest| BASE64_STANDARD.decode(rest).ok());
    [text.as_bytes().to_vec()].into_iter().chain(random).collect()
}

/// What the rows of a stopped server hold, opened: mail keys, and secrets of webhooks.
fn opened(data: &str, ring: &str) -> (Vec<MailKey>, Vec<String>) {
    let text = fs::read_to_string(ring).expect("a ring");
    let keys = text.lines().filter(|line| line.starts_with("swm_"));
    let keys: Vec<RingKey> = keys.map(|line| line.parse().expect("a key")).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let options = ClusterOptions {
            data: DataDir::open(data).expect("a data folder"),
            shards: 2,
            cache_bytes: 1024 * 1024,
            clock: std::sync::Arc::new(MonotonicClock::new()),
            ring: switchward_state::seal::KeyRing::of(keys),
            on_fatal: Box::new(|why| panic!("{why}")),
            member: None,
        };
        let cluster = Cluster::open(options).await.expect("the ring opens it");
        let tenant = TenantId(1);
        let (tenancy, sources) = cluster.sealed_of(tenant).await.expect("rows");
        let tenancy = tenancy.expect("a record");
        let now = cluster.now();
        let mut texts: Vec<String> = Vec::new();
        for endpoint in &tenancy.endpoints {
            texts.extend(
                endpoint.good_secrets(&cluster.ring(), tenant, now).iter().map(|text| text.to_string()),
            );
        }
        for source in &sources {
            texts.extend(
                source.good_secrets(&cluster.ring(), tenant, now).iter().map(|text| text.to_string()),
            );
        }
        let mails = tenancy.mail_keys(&cluster.ring(), tenant);
        assert_eq!((mails.len(), tenancy.keys.len()), (1, 1));
        // A tenant's secret cannot be decrypted for another tenant, nor in another field.
        assert!(tenancy.mail_keys(&cluster.ring(), TenantId(2)).is_empty());
        assert!(cluster.ring().open(tenant, SecretOf::Endpoint("ops"), &tenancy.keys[0]).is_err());
        let copy =
            cluster.shards()[0].read().await.expect("a shard").row(&Key::tenancy(tenant)).expect("rows");
        let Some(Row::Tenancy(copy)) = copy.as_deref() else { panic!("{copy:?}") };
        assert_eq!(copy.keys, tenancy.keys);
        cluster.shutdown().await.expect("it ends");
        (mails, texts)
    })
}

#[test]
fn no_secret_stands_as_it_is_in_what_a_server_writes() {
    let site = Site::new();
    let (ring, data) = (made(&site), site.path("data"));
    let (live, still) = (site.path("live"), site.path("still"));
    let running = Running::of(&mut server(&site, Some(&ring)));
    let secrets = put_in(&running);
    run(["backup", &live, "--data-dir", &data]).with_code(0);
    let (log, code) = running.stop();
    assert_eq!(code, Some(0), "{log}");
    let mut command = program();
    command.args(["backup", &still, "--data-dir", &data]).env("SWITCHWARD_KEYS_FILE", &ring);
    Ended::of(&mut command).with_code(0);
    let (mails, texts) = opened(&data, &ring);
    for text in &secrets {
        assert!(texts.contains(text), "it is there, and opens");
    }
    assert_eq!(texts.len(), secrets.len());
    for folder in [&data, &live, &still] {
        let written = Written::of(folder);
        // Other data is found, so the search covers the right files.
        assert!(!written.holds(b"https://ops.example/in").is_empty(), "{folder}");
        let secrets = secrets.iter().flat_map(|text| parts(text));
        for secret in secrets.chain(mails.iter().map(|key| key.0.to_vec())) {
            assert_eq!(written.holds(&secret), [""; 0], "{folder}");
        }
    }
    for secret in &secrets {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_server_without_a_ring_keeps_no_secret_and_says_how_it_gets_one() {
    let site = Site::new();
    let running = Running::of(&mut server(&site, None));
    let refused = ask(&running, &["endpoint", "put", "ops", "https://ops.example/in"]).with_code(4);
    let error = refused.error();
    assert_eq!(error["reason"], "KEY_RING_MISSING", "{error}");
    assert!(
        error["message"].as_str().is_some_and(|said| said.contains("switchward secrets create FILE")),
        "{error}"
    );
    let source = ["source", "create", "shop", "--kind", "github", "--session", "s", "--event", "paid"];
    assert_eq!(ask(&running, &source).with_code(4).error()["reason"], "KEY_RING_MISSING");
    let (log, code) = running.stop();
    assert!(code == Some(0) && log.contains("there is no key ring"), "{log}");
    // With one it has what mails are signed with from its next start on.
    let ring = site.path("data.keys");
    run(["secrets", "create", &ring]).with_code(0);
    let running = Running::of(&mut server(&site, None));
    ask(&running, &["endpoint", "put", "ops", "https://ops.example/in"]).with_code(0);
    assert_eq!(running.stop().1, Some(0));
    assert_eq!(opened(&site.path("data"), &ring).0.len(), 1);
}

#[test]
fn a_ring_is_taken_from_what_systemd_hands_over() {
    let site = Site::new();
    let (ring, handed) = (made(&site), site.path("credentials"));
    fs::create_dir(&handed).expect("a folder");
    fs::copy(&ring, Path::new(&handed).join("switchward-keys")).expect("a file");
    let running = Running::of(server(&site, None).env("CREDENTIALS_DIRECTORY", &handed));
    ask(&running, &["endpoint", "put", "ops", "https://ops.example/in"]).with_code(0);
    assert_eq!(running.stop().1, Some(0));
    assert_eq!(opened(&site.path("data"), &ring).0.len(), 1);
    let refused = Ended::of(&mut server(&site, None)).with_code(1);
    assert!(refused.err.contains("the key ring lacks"), "what is sealed needs it: {refused:?}");
    // What the configuration names comes first.
    fs::write(Path::new(&handed).join("switchward-keys"), "no ring").expect("a file");
    let running = Running::of(server(&site, Some(&ring)).env("CREDENTIALS_DIRECTORY", &handed));
    assert_eq!(running.stop().1, Some(0));
}

#[test]
fn another_ring_opens_no_data_folder_and_no_backup() {
    let site = Site::new();
    let (ring, data, copy) = (made(&site), site.path("data"), site.path("copy"));
    let running = Running::of(&mut server(&site, Some(&ring)));
    put_in(&running);
    run(["backup", &copy, "--data-dir", &data]).with_code(0);
    assert_eq!(running.stop().1, Some(0));
    let other = site.path("other.keys");
    run(["secrets", "create", &other]).with_code(0);
    let restored = site.path("restored");
    for ring in [None, Some(other.as_str())] {
        let refused = Ended::of(&mut server(&site, ring)).with_code(1);
        assert!(
            refused.err.contains("keys_file") && refused.err.contains("the key ring lacks"),
            "{refused:?}"
        );
        let mut restore = server_on(&site, &restored, ring);
        restore.args(["--restore", &copy]);
        let refused = Ended::of(&mut restore).with_code(4);
        assert!(refused.err.contains("the backup cannot be restored"), "{refused:?}");
        assert!(refused.err.contains("keys_file"), "{refused:?}");
        assert!(!Path::new(&restored).exists(), "nothing was written");
    }
    let mut restore = server_on(&site, &restored, Some(&ring));
    restore.args(["--restore", &copy]);
    assert_eq!(Running::of(&mut restore).stop().1, Some(0));
    assert_eq!(opened(&restored, &ring), opened(&data, &ring));
}

fn status(site: &Site, ring: &str) -> Vec<Value> {
    let mut command = program();
    command.args(["secrets", "status", "--data-dir", &site.path("data"), "-o", "json"]);
    let ended = Ended::of(command.env("SWITCHWARD_KEYS_FILE", ring)).with_code(0);
    ended.json()["keys"].as_array().cloned().expect("a list")
}

fn drop_key(site: &Site, ring: &str, key: &Value) -> Ended {
    drop_key_with(site, ring, key, &[])
}

fn drop_key_with(site: &Site, ring: &str, key: &Value, more: &[&str]) -> Ended {
    let mut command = program();
    let key = key["key"].as_str().expect("an id");
    command.args(["secrets", "drop", key, ring, "--data-dir", &site.path("data"), "-o", "json"]);
    Ended::of(command.args(more))
}

#[test]
fn a_key_is_rotated_while_the_server_runs_and_dropped_when_nothing_needs_it() {
    let site = Site::new();
    let (ring, data, copy) = (made(&site), site.path("data"), site.path("copy"));
    let mut running = Running::of(&mut server(&site, Some(&ring)));
    let secrets = put_in(&running);
    run(["backup", &copy, "--data-dir", &data]).with_code(0);
    let before = status(&site, &ring);
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0]["current"] == true && before[0]["backups"] == 1, "{before:?}");
    let count = before[0]["secrets"].as_u64().expect("a number");

    run(["secrets", "rotate", &ring]).with_code(0);
    let early = drop_key(&site, &ring, &before[0]).with_code(4);
    assert!(
        early.error()["message"].as_str().is_some_and(|said| said.contains("secrets encrypted with the key")),
        "{early:?}"
    );
    hang_up(running.pid());
    running.until_logged("encrypted secrets again under the current key");
    let after = status(&site, &ring);
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(
        after[0]["current"] == true && after[0]["secrets"] == count && after[0]["backups"] == 0,
        "{after:?}"
    );
    assert!(after[1]["key"] == before[0]["key"] && after[1]["secrets"] == 0, "{after:?}");
    // The backup needs the older one.
    let kept = drop_key(&site, &ring, &after[1]).with_code(4);
    assert!(kept.error()["message"].as_str().is_some_and(|said| said.contains("1 backup")), "{kept:?}");
    let current = drop_key(&site, &ring, &after[0]).with_code(4);
    assert!(current.error()["message"].as_str().is_some_and(|said| said.contains("current")), "{current:?}");
    // The same holds at a path that it was moved to, which only the operator knows.
    let moved = site.path("moved");
    fs::rename(&copy, &moved).expect("a folder");
    let missing = drop_key(&site, &ring, &after[1]).with_code(4);
    assert!(
        missing.error()["message"].as_str().is_some_and(|said| said.starts_with("a missing backup may need")),
        "{missing:?}"
    );
    let named =
        drop_key_with(&site, &ring, &after[1], &["--missing-deleted", "--backup", &moved]).with_code(4);
    assert!(named.error()["message"].as_str().is_some_and(|said| said.contains("1 backup")), "{named:?}");
    fs::remove_dir_all(&moved).expect("a folder");
    drop_key_with(&site, &ring, &after[1], &["--missing-deleted"]).with_code(0);
    assert_eq!(fs::read_to_string(&ring).expect("a ring").matches("swm_").count(), 1);

    // A ring without the key that everything is sealed under is not taken.
    fs::copy(&ring, site.path("good.keys")).expect("a file");
    fs::remove_file(&ring).expect("a file");
    run(["secrets", "create", &ring]).with_code(0);
    hang_up(running.pid());
    running.until_logged("failed to reload the key ring; the previous one stays in use");
    fs::copy(site.path("good.keys"), &ring).expect("a file");
    assert_eq!(running.stop().1, Some(0));
    let (mails, texts) = opened(&data, &ring);
    assert!(mails.len() == 1 && secrets.iter().all(|text| texts.contains(text)));
    // The next start needs no migration and no other key.
    assert_eq!(Running::of(&mut server(&site, Some(&ring))).stop().1, Some(0));
}

#[test]
fn a_first_key_makes_the_ring_and_a_lost_one_is_not_replaced() {
    let site = Site::new();
    let data = site.path("data");
    let (ring, create) = (site.path("data.keys"), ["tenant", "create", "globex", "--data-dir", &data]);
    run(create).with_code(0);
    assert!(fs::read_to_string(&ring).expect("it was made").contains("swm_"));
    let running = Running::of(&mut server(&site, None));
    put_in(&running);
    assert_eq!(running.stop().1, Some(0));
    fs::remove_file(&ring).expect("a file");
    let refused = run(["keys", "bootstrap", "--data-dir", &data, "--tenant", "globex"]).with_code(1);
    assert!(refused.err.contains("keys_file") && !Path::new(&ring).exists(), "{refused:?}");
    let named = site.path("named.keys");
    let fresh = site.path("fresh");
    let mut command = program();
    command.args(["tenant", "create", "acme", "--data-dir", &fresh]).env("SWITCHWARD_KEYS_FILE", &named);
    Ended::of(&mut command).with_code(0);
    assert!(Path::new(&named).exists() && !Path::new(&site.path("fresh.keys")).exists());
}

#[test]
fn commands_on_a_stopped_server_use_the_key_ring_of_its_configuration() {
    let site = Site::new();
    let (ring, data, file) = (made(&site), site.path("data"), site.path("own.toml"));
    let text = format!("data_dir = {data:?}\nkeys_file = {ring:?}\nshards = 2\nlisten = \"127.0.0.1:0\"\n");
    private(&file, &text);
    run(["tenant", "create", "acme", "--config", &file]).with_code(0);
    run(["keys", "bootstrap", "--config", &file]).with_code(0);
    let mut server = program();
    server.args(["server", "--config", &file, "--log", "info"]);
    let (log, code) = Running::of(&mut server).stop();
    assert_eq!(code, Some(0), "{log}");
    run(["backup", &site.path("still"), "--config", &file]).with_code(0);
    let status = run(["secrets", "status", "--config", &file, "-o", "json"]).with_code(0).json();
    let keys = status["keys"].as_array().expect("a list");
    assert!(keys.len() == 1 && keys[0]["current"] == true && keys[0]["backups"] == 1, "{status}");
    assert!(!Path::new(&site.path("data.keys")).exists(), "no other ring was made");
    let refused = run(["backup", &site.path("other"), "--data-dir", &data]).with_code(1);
    assert!(refused.err.contains("keys_file"), "{refused:?}");
    let unnamed = run(["keys", "bootstrap"]).with_code(2);
    assert!(unnamed.err.contains("no data folder is given"), "{unnamed:?}");
}

#[test]
fn a_ring_may_be_in_the_environment_and_an_invalid_one_is_reported() {
    let site = Site::new();
    let ring = made(&site);
    let text = fs::read_to_string(&ring).expect("a ring");
    let again = run(["secrets", "create", &ring]).with_code(4);
    assert!(again.err.contains("already exists"), "{again:?}");
    let mut command = server(&site, None);
    let running = Running::of(command.env("SWITCHWARD_KEYS", &text));
    put_in(&running);
    assert_eq!(running.stop().1, Some(0));
    assert_eq!(opened(&site.path("data"), &ring).0.len(), 1);
    let wrong = Ended::of(server(&site, None).env("SWITCHWARD_KEYS", "swordfish")).with_code(1);
    assert!(wrong.err.contains("SWITCHWARD_KEYS") && !wrong.err.contains("swordfish"), "{wrong:?}");
    let mut doctor = program();
    doctor.args([
        "doctor",
        "--config",
        &site.path("tenants.toml"),
        "--data-dir",
        &site.path("data"),
        "-o",
        "json",
    ]);
    doctor.args(["--listen", "127.0.0.1:0"]);
    let checks =
        |command: &mut Command| Ended::of(command).json()["checks"].as_array().cloned().unwrap_or_default();
    let said = |command: &mut Command| {
        let found = checks(command).into_iter().find(|check| check["check"] == "keys");
        found.expect("it is looked at")
    };
    assert_eq!(said(&mut doctor)["status"], "warn");
    assert_eq!(said(doctor.env("SWITCHWARD_KEYS_FILE", &ring))["status"], "ok");
    // What a killed `secrets rotate` leaves beside the ring.
    let left = PathBuf::from(&ring).with_file_name(".new-a1b2c3");
    fs::write(&left, "").expect("the folder is writable");
    let found = checks(&mut doctor);
    let names_it = |check: &Value| check["message"].as_str().is_some_and(|it| it.contains(".new-a1b2c3"));
    assert!(found.iter().any(|check| check["check"] == "secrets" && names_it(check)), "{found:?}");
    assert!(left.exists());
    assert_eq!(said(doctor.env("SWITCHWARD_KEYS_FILE", site.path("missing")))["status"], "fail");
}
