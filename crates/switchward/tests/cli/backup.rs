//! Backups of a server that runs: taken under load, looked through, restored; and what must not happen twice.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};
use std::thread;
use tempfile::TempDir;

use crate::delivery_jobs::Endpoint;
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Dev, Ended, ask, deploy_gate, folder, private, program, run};

/// Callers of a server whose backup is taken.
const CALLERS: usize = 6;
/// Backups that are taken meanwhile.
const BACKUPS: usize = 3;

/// A server that was restored, or another one whose admin key is known.
struct Server {
    running: Running,
    key: String,
}

impl Server {
    fn start(command: &mut Command, key: &str) -> Self {
        Self { running: Running::of(command), key: key.to_owned() }
    }

    fn run(&self, words: &[&str]) -> Ended {
        self.run_as(&self.key, words)
    }

    fn run_as(&self, key: &str, words: &[&str]) -> Ended {
        let mut command = program();
        command.env("SWITCHWARD_ADDRESS", &self.running.address).env("SWITCHWARD_API_KEY", key);
        Ended::of(command.args(words))
    }

    fn metrics(&self) -> String {
        let host =
            self.running.metrics.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let host = host.expect("plain HTTP");
        ask(host, host, "GET /metrics", &[], "").1
    }

    fn json(&self, words: &[&str]) -> Value {
        self.run(&[words, &["-o", "json"]].concat()).with_code(0).json()
    }
}

/// The command of a server on this data folder that restores a backup first.
fn restoring(data: &Path, backup: &Path) -> Command {
    let mut command = program();
    command.arg("server").arg("--data-dir").arg(data).arg("--restore").arg(backup);
    command.args(["--listen", "127.0.0.1:0", "--log", "info"]);
    command
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The environment that gives a server the key ring of a development server with this data folder.
fn ring(data: &str) -> [(&'static str, String); 1] {
    [("SWITCHWARD_KEYS_FILE", format!("{data}.keys"))]
}

/// Takes a backup of a server's data folder.
fn back_up(data: &str, to: &Path) -> Value {
    run(["backup", to.to_str().expect("a plain path"), "--data-dir", data, "-o", "json"]).with_code(0).json()
}

/// A step that a server has acknowledged: a session was started, or was answered as well.
type Step = (String, bool);

/// Starts and answers sessions until it is stopped, and notes what was acknowledged.
fn caller(dev: &Dev, number: usize, stop: &AtomicBool, acknowledged: &Mutex<Vec<Step>>) {
    let key = text(&dev.ready["agent_key"]);
    for round in 0.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let name = format!("load-{number}-{round}");
        let start = json!({ "definition": "deploy-gate", "sessionId": name });
        let started = dev.post("SessionService/StartSession", &key, &start);
        assert!(started["session"].is_object(), "{started}");
        acknowledged.lock().expect("no caller panics").push((name.clone(), false));
        let answer = json!({ "name": name, "answer": "yes" });
        let answered = dev.post("SessionService/AnswerCheckpoint", &key, &answer);
        assert!(answered["session"].is_object(), "{answered}");
        acknowledged.lock().expect("no caller panics").push((name, true));
    }
}

#[test]
fn a_backup_under_load_restores_every_step_that_was_acknowledged_before_it() {
    let dev = Dev::start();
    dev.json(&["deploy", &deploy_gate()]);
    let data = text(&dev.ready["data_dir"]);
    let at = tempfile::tempdir().unwrap();
    let (stop, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut before: Vec<Vec<Step>> = Vec::new();
    thread::scope(|scope| {
        for number in 0..CALLERS {
            let (dev, stop, acknowledged) = (&dev, &stop, &acknowledged);
            scope.spawn(move || caller(dev, number, stop, acknowledged));
        }
        for number in 0..BACKUPS {
            let enough = CALLERS * 4 * (number + 1);
            dev.until("there is load", || acknowledged.lock().unwrap().len() >= enough);
            before.push(acknowledged.lock().unwrap().clone());
            back_up(&data, &at.path().join(number.to_string()));
        }
        stop.store(true, Ordering::Release);
    });
    let key = text(&dev.ready["person_key"]);
    for (number, before) in before.into_iter().enumerate() {
        let backup = at.path().join(number.to_string());
        run(["backup", "verify", backup.to_str().unwrap()]).with_code(0);
        let restored = Server::start(
            restoring(&at.path().join(format!("data-{number}")), &backup).envs(ring(&data)),
            &key,
        );
        for (name, answered) in before {
            let session = restored.json(&["get", &name])["session"].clone();
            let state = text(&session["at"][0]);
            let least = if answered { "migration-check" } else { "env-check" };
            assert!(state == least || (!answered && state == "migration-check"), "{name}: {session}");
        }
        restored.running.stop();
    }
}

#[test]
fn a_stopped_server_has_a_backup_too_and_damage_is_named() {
    let dev = Dev::start();
    dev.json(&["deploy", &deploy_gate()]);
    dev.json(&["start", "deploy-gate", "--key", "release-42"]);
    let (data, at) = (text(&dev.ready["data_dir"]), tempfile::tempdir().unwrap());
    let (first, second) = (at.path().join("first"), at.path().join("second"));
    let running = back_up(&data, &first);
    let again = run(["backup", first.to_str().unwrap(), "--data-dir", &data]).with_code(4);
    assert!(again.err.contains("already exists"), "{again:?}");
    // A folder with the temporary name that is no backup's is kept.
    let other = at.path().join("third.incomplete");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "mine").unwrap();
    let third = at.path().join("third");
    run(["backup", third.to_str().unwrap(), "--data-dir", &data]).with_code(4);
    assert_eq!(std::fs::read_to_string(other.join("notes.txt")).unwrap(), "mine");
    let key = text(&dev.ready["person_key"]);
    run(["server", "--data-dir", &data, "--restore", first.to_str().unwrap()]).with_code(1);
    let mut dev = dev;
    dev.end();
    run(["server", "--data-dir", &data, "--restore", first.to_str().unwrap()]).with_code(4);
    let stopped = back_up(&data, &second);
    let rows = |backup: &Value| {
        let files = backup["manifest"]["files"].as_array().unwrap().clone();
        files.iter().filter_map(|file| file["rows"].as_u64()).sum::<u64>()
    };
    assert!(rows(&running) > 5 && rows(&stopped) >= rows(&running), "{running} {stopped}");
    let restored = Server::start(restoring(&at.path().join("data"), &second).envs(ring(&data)), &key);
    assert_eq!(restored.json(&["get", "release-42"])["session"]["sessionId"], "release-42");
    let (log, _) = restored.running.stop();
    assert!(log.contains("effects are held"), "{log}");
    let damaged = second.join("group-0000000000000001.snap");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let found = run(["backup", "verify", second.to_str().unwrap()]).with_code(5);
    assert!(
        found.out.contains("1 damaged") && found.out.contains("group-0000000000000001.snap"),
        "{found:?}"
    );
    let manifest = second.join("BACKUP");
    let whole = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, "{").unwrap();
    let found = run(["backup", "verify", second.to_str().unwrap()]).with_code(5);
    assert!(found.err.contains("BACKUP"), "{found:?}");
    std::fs::write(&manifest, whole).unwrap();
    let nowhere = at.path().join("other");
    let refused = Ended::of(&mut restoring(&nowhere, &second)).with_code(1);
    assert!(refused.err.contains("group-0000000000000001.snap"), "{refused:?}");
    assert!(!nowhere.exists(), "nothing is made of a damaged backup");
    run(["backup", "verify", at.path().to_str().unwrap()]).with_code(3);
    run(["backup", at.path().join("x").to_str().unwrap()]).with_code(2);
}

#[test]
fn the_folder_of_a_stopped_server_of_a_cluster_is_refused_with_what_to_do() {
    let at = tempfile::tempdir().unwrap();
    let path = |name: &str| at.path().join(name).to_str().expect("a plain path").to_owned();
    run(["cluster", "certs", "--dir", &path("certs"), "--servers", "1"]).with_code(0);
    let config = path("server-1.toml");
    let text = format!(
        "data_dir = {data:?}\n[cluster]\nserver = 1\nlisten = \"127.0.0.1:7401\"\nca_file = {ca:?}\n\
         cert_file = {cert:?}\nkey_file = {key:?}\n",
        data = path("data"),
        ca = path("certs/ca.crt"),
        cert = path("certs/server-1.crt"),
        key = path("certs/server-1.key"),
    );
    std::fs::write(&config, text).unwrap();
    let refused = run(["cluster", "join", "--config", &config]).with_code(2);
    assert!(refused.err.contains("server 1 joins no cluster: it founds one"), "{refused:?}");
    assert!(!at.path().join("data").exists(), "nothing is made");
    let init = ["cluster", "init", "--config", config.as_str(), "--tenant", "acme"];
    run(init).with_code(0);
    let again = run(init).with_code(4);
    assert!(
        again.err.contains("belongs to server 1 of cluster ") && again.err.contains(" already"),
        "{again:?}"
    );
    assert!(!again.err.contains("may lack steps"), "it has never started: {again:?}");
    let backup = path("backup");
    for (words, remedy) in [
        (vec!["backup", backup.as_str()], "on a server of the cluster that runs"),
        (vec!["secrets", "status"], "it asks the running server"),
        (vec!["keys", "bootstrap"], "[[tenants]]"),
        (vec!["tenant", "create", "globex"], "start the server, and run `switchward tenant create NAME`"),
    ] {
        let refused = run([&words[..], &["--config", config.as_str()]].concat()).with_code(4);
        for part in ["belongs to server 1 of cluster ", "may lack steps that were acknowledged", remedy] {
            assert!(refused.err.contains(part), "{part}: {refused:?}");
        }
    }
    let left = std::fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("backup")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A workflow that posts to an endpoint at once, by a message and by a request.
fn shop(url: &str) -> TempDir {
    let text = json!({
        "name": "shop",
        "states": [
            { "name": "say", "type": "output", "template": "ordered", "target": "webhook", "recipients": [format!("{url}/{{gathered_data.who}}")] },
            { "name": "push", "type": "logic",
              "operations": [{ "type": "http_request", "config": { "method": "POST", "url": format!("{url}/{{gathered_data.who}}"), "body": {} } }] },
            { "name": "fine", "type": "conversation" },
        ],
        "transitions": [
            { "from": "say", "port": "done", "to": "push" },
            { "from": "push", "to": "fine", "guards": [{ "type": "always" }] },
        ],
    });
    folder(&[("shop.json", &text.to_string())])
}

/// Lets a server reach this endpoint, or disables delivery.
fn reaching<'a>(command: &'a mut Command, at: &Path, endpoint: &Endpoint, delivery: bool) -> &'a mut Command {
    let port = endpoint.url.rsplit(':').next().expect("an address has a port");
    let file = at.join(format!("delivery-{delivery}.toml"));
    let text = format!(
        "[delivery]\nenabled = {delivery}\nallow_http = true\nallow_loopback = true\nports = [{port}]\n\
         [[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n",
        at.join("admin.key")
    );
    private(at.join("admin.key"), ADMIN_KEY);
    std::fs::write(&file, text).expect("a file");
    command.arg("--config").arg(file)
}

/// The input of a session of the tenant whose effects are held.
const HELD: &str = r#"{"who":"held"}"#;

#[test]
fn after_a_restore_nothing_goes_out_before_it_is_released() {
    let endpoint = Endpoint::start();
    let (site, at) = (Site::new(), tempfile::tempdir().unwrap());
    let definition = shop(&endpoint.url);
    let path = definition.path().join("shop.json").to_str().unwrap().to_owned();
    // It does not deliver, so that effects are pending when the backup is taken.
    let mut command = program();
    command.args(["server", "--data-dir", &site.path("data"), "--listen", "127.0.0.1:0", "--log", "info"]);
    let first = Server::start(reaching(&mut command, at.path(), &endpoint, false), ADMIN_KEY);
    first.run(&["deploy", &path]).with_code(0);
    first.run(&["start", "shop", "--key", "order-1", "--input", HELD]).with_code(0);
    let backup = at.path().join("backup");
    back_up(&site.path("data"), &backup);
    first.running.stop();
    let mut command = restoring(&at.path().join("data"), &backup);
    let restored = Server::start(reaching(&mut command, at.path(), &endpoint, true), ADMIN_KEY);
    assert!(restored.json(&["tenant", "get"])["tenant"]["effectsHeldTime"].is_string());
    // New effects of the tenant are held as well; those of a tenant that the backup does not have are not.
    restored.run(&["start", "shop", "--key", "order-2", "--input", HELD]).with_code(0);
    let other = restored.json(&["tenant", "create", "globex"]);
    let other = text(&other["adminSecret"]);
    restored.run_as(&other, &["deploy", &path]).with_code(0);
    restored
        .run_as(&other, &["start", "shop", "--key", "order-3", "--input", r#"{"who":"fresh"}"#])
        .with_code(0);
    for _ in 0..2 {
        // Its message and its request, and no earlier effects.
        endpoint.next("POST /fresh ").answer.send((200, json!({}))).unwrap();
    }
    assert!(endpoint.asked.try_recv().is_err(), "what is held stays");
    let listed = restored.json(&["list", "effects"]);
    assert_eq!(listed["effects"].as_array().map(Vec::len), Some(2), "{listed}");
    // What must not be sent a second time is given up while it is held.
    let given_up = text(&listed["effects"][0]["name"]);
    restored.run(&["effect", "dismiss", &given_up, "--yes"]).with_code(0);
    restored.run(&["effect", "release"]).with_code(0);
    restored.run(&["effect", "release"]).with_code(0);
    for _ in 0..3 {
        // The message of the one that was not given up, and both requests.
        let asked = endpoint.next("POST /held ");
        asked.answer.send((200, json!({}))).unwrap();
    }
    assert_eq!(restored.json(&["tenant", "get"])["tenant"]["effectsHeldTime"], Value::Null);
    restored.running.stop();
}

const GONE: [&str; 2] = ["plumbagowharf", "quixotryfjord"];
const KEPT: &str = "vexillumdwarf";

#[test]
fn a_restore_repeats_what_was_erased_after_the_backup() {
    let (site, at) = (Site::new(), tempfile::tempdir().unwrap());
    let server = Server::start(&mut site.plain("127.0.0.1:0"), ADMIN_KEY);
    server.run(&["deploy", &deploy_gate()]).with_code(0);
    // Distinct words, which are still visible in a compressed table.
    let start = |key: &str, word: &str| {
        let label = format!("customer={word}");
        let started = server.json(&["start", "deploy-gate", "--key", key, "--label", &label]);
        text(&started["session"]["name"])
    };
    let end = |name: &str, verb: &str| {
        server.run(&["cancel", name, "--yes"]).with_code(0);
        server.run(&["session", verb, name, "--yes"]).with_code(0);
    };
    let (erased, deleted) = (start("gone-1", GONE[0]), start("gone-2", GONE[1]));
    // An earlier session with the same key, and so the same name, was deleted before the backup.
    let earlier = start("kept-1", GONE[0]);
    end(&earlier, "delete");
    let kept = loop {
        let label = format!("customer={KEPT}");
        let again = ["start", "deploy-gate", "--key", "kept-1", "--label", &label, "-o", "json"];
        let again = server.run(&again);
        if again.code == 0 {
            break text(&again.json()["session"]["name"]);
        }
        assert_eq!(again.error()["reason"], "ALREADY_EXISTS");
    };
    assert_eq!(kept, earlier);
    let backup = at.path().join("backup");
    back_up(&site.path("data"), &backup);
    end(&erased, "erase");
    end(&deleted, "delete");
    let list = at.path().join("export.jsonl");
    server.run(&["export", "--to", list.to_str().unwrap()]).with_code(0);
    let listed = std::fs::read_to_string(&list).unwrap();
    assert_eq!(listed.matches(r#"{"removal":"#).count(), 3, "{listed}");
    server.running.stop();
    let data = at.path().join("data");
    let cut = at.path().join("cut.jsonl");
    std::fs::write(&cut, listed.lines().next().unwrap()).unwrap();
    let refused = Ended::of(restoring(&data, &backup).arg("--erasures").arg(&cut)).with_code(1);
    assert!(refused.err.contains("the export is incomplete"), "{refused:?}");
    assert!(!data.exists());
    let mut command = restoring(&data, &backup);
    let restored = Server::start(command.arg("--erasures").arg(&list), ADMIN_KEY);
    let left = restored.json(&["get", &erased])["session"].clone();
    assert_eq!((&left["status"], &left["sessionId"]), (&json!("SESSION_STATUS_CANCELLED"), &Value::Null));
    restored.run(&["get", &deleted]).with_code(3);
    assert_eq!(restored.json(&["get", &kept])["session"]["sessionId"], "kept-1");
    let events = restored.json(&["list", "events", &erased]);
    let by = |kind: &str| {
        let events = events["events"].as_array().unwrap();
        events.iter().find(|event| event["type"] == kind).map(|event| text(&event["by"]))
    };
    // It had not ended when the backup was taken: the server ends it, and what the admin has done stays theirs.
    assert_eq!(by("session.cancelled").as_deref(), Some("server"), "{events}");
    assert!(by("session.removed").is_some_and(|by| by != "server"), "{events}");
    restored.running.stop();
    for gone in GONE {
        assert_eq!(files_with(&data, gone), Vec::<std::path::PathBuf>::new(), "nothing of it is in a file");
    }
    assert!(!files_with(&data, KEPT).is_empty());
}

/// The files below a folder that hold a text.
fn files_with(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .unwrap_or_default()
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_deleted_tenant_is_gone_for_its_keys_at_once_and_from_the_files_later() {
    let site = Site::new();
    let server = Server::start(&mut site.plain("127.0.0.1:0"), ADMIN_KEY);
    let made = server.json(&["tenant", "create", "globex"]);
    let key = text(&made["adminSecret"]);
    let as_other = |words: &[&str]| server.run_as(&key, words);
    as_other(&["deploy", &deploy_gate()]).with_code(0);
    as_other(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    let own = as_other(&["tenant", "delete", "globex", "--yes", "-o", "json"]).with_code(6).error();
    assert_eq!(own["reason"], "ROLE_NOT_ALLOWED", "only the server's first tenant deletes others");
    let unsure = server.run(&["tenant", "delete", "globex"]).with_code(2);
    assert!(unsure.err.contains("--yes"), "{unsure:?}");
    let first = server.run(&["tenant", "delete", "acme", "--yes", "-o", "json"]).with_code(4).error();
    assert_eq!(first["reason"], "STATE_MISMATCH");
    server.run(&["tenant", "delete", "nobody", "--yes"]).with_code(3);
    let deleted = server.json(&["tenant", "delete", "globex", "--yes"]);
    assert_eq!(deleted, json!({}));
    let refused = as_other(&["list", "sessions", "-o", "json"]).with_code(6).error();
    assert_eq!(refused["reason"], "CREDENTIAL_INVALID");
    // Its name is free when its last row is gone.
    let again = loop {
        let made = server.run(&["tenant", "create", "globex", "-o", "json"]);
        if made.code == 0 {
            break made.json();
        }
        assert_eq!(made.with_code(4).error()["reason"], "ALREADY_EXISTS");
    };
    assert_eq!(
        as_other(&["list", "sessions", "-o", "json"]).with_code(6).error()["reason"],
        "CREDENTIAL_INVALID"
    );
    let fresh = text(&again["adminSecret"]);
    let listed = server.run_as(&fresh, &["list", "sessions", "-o", "json"]).with_code(0).json();
    assert_eq!(listed, json!({}), "the new one has nothing of the old one");
    let metrics = server.metrics();
    assert!(metrics.contains("switchward_rows_removed_total"), "{metrics}");
    server.running.stop();
}
