use super::compared::all;
use super::*;
use std::fs;
use std::time::SystemTime;
use switchward_peer::certs::{Authority, Validity};
use switchward_state::Levels;

fn redis(run_id: &str) -> RedisFacts {
    RedisFacts::Reached { run_id: run_id.into(), prefix: "switchward".into() }
}

fn own() -> Own {
    let peers = BTreeMap::from([(2, "node-2:7401".to_owned())]);
    Own { peers, keys: Some("0a".into()), redis: Some(redis("3f")) }
}

fn days_from_now(days: i64) -> u64 {
    let at = Timestamp::now() + jiff::SignedDuration::from_hours(days * 24);
    u64::try_from(at.as_millisecond()).unwrap()
}

/// A server that has everything in common with this one.
fn answer(server: u64) -> Answer {
    let level = Levels::OF_PROGRAM.highest.0;
    let facts = ServerFacts {
        version: "1.2.3".into(),
        lowest_level: Levels::OF_PROGRAM.lowest.0,
        highest_level: level,
        level,
        clock_ms: 0,
        certificate_expire_ms: Some(days_from_now(90)),
        disk_free_bytes: Some(5 << 30),
        disk_low: false,
        keys: "0a".into(),
        redis: redis("3f"),
        servers: Vec::new(),
    };
    Answer { server, facts, clock_ahead_ms: 3 }
}

/// The status and the finding of a check.
fn of(found: &[CheckResult], what: &str) -> (CheckStatus, String) {
    let found = found.iter().find(|found| found.what == what).expect("the check was made");
    assert_eq!(found.advice.is_empty(), found.status == CheckStatus::Ok, "{found:?}");
    (found.status, found.said.clone())
}

/// What is found if server 3 is different in this way.
fn with(change: impl Fn(&mut Answer)) -> Vec<CheckResult> {
    let mut third = answer(3);
    change(&mut third);
    all(&own(), &[answer(2), third], &[])
}

#[test]
fn servers_that_have_all_in_common_pass() {
    let found = with(|_| {});
    assert!(found.iter().all(|found| found.status == CheckStatus::Ok), "{found:?}");
    let names: Vec<_> = found.iter().map(|found| found.what).collect();
    assert_eq!(names, ["peers", "clocks", "levels", "certificates", "disks", "rings", "shared-redis"]);
    assert!(of(&found, "peers").1.starts_with("the servers 2, 3 are reachable"));
    let gateway = Own { keys: None, redis: None, ..own() };
    assert_eq!(all(&gateway, &[answer(2)], &[]).len(), 5, "a gateway has no keys and no Redis");
}

#[test]
fn each_difference_is_named_with_its_server() {
    for (what, status, words, change) in [
        (
            "clocks",
            CheckStatus::Warn,
            "server 3 by +1497 ms",
            (|it: &mut Answer| it.clock_ahead_ms = 1_500) as fn(&mut Answer),
        ),
        ("clocks", CheckStatus::Fail, "server 3 by -2503 ms", |it| it.clock_ahead_ms = -2_503),
        ("levels", CheckStatus::Fail, "server 3: the cluster writes", |it| it.facts.highest_level = 0),
        ("disks", CheckStatus::Fail, "server 3 has 1 MiB free", |it| {
            (it.facts.disk_low, it.facts.disk_free_bytes) = (true, Some(1 << 20));
        }),
        ("certificates", CheckStatus::Warn, "that of server 3", |it| {
            it.facts.certificate_expire_ms = Some(days_from_now(7));
        }),
        ("rings", CheckStatus::Fail, "the key rings of server 3 have other keys", |it| {
            it.facts.keys = "0b".into()
        }),
        ("shared-redis", CheckStatus::Fail, "server 3 has another Redis", |it| it.facts.redis = redis("40")),
        ("shared-redis", CheckStatus::Fail, "server 3 has another Redis", |it| {
            it.facts.redis = RedisFacts::None
        }),
        ("shared-redis", CheckStatus::Fail, "server 3 cannot reach its Redis: refused", |it| {
            it.facts.redis = RedisFacts::Failed { why: "refused".into() };
        }),
    ] {
        let found = with(change);
        let (judged, said) = of(&found, what);
        assert!(judged == status && said.contains(words), "{what}: {found:?}");
        let others = found.iter().filter(|found| found.status != CheckStatus::Ok).count();
        assert_eq!(others, 1, "{found:?}");
    }
}

#[test]
fn a_clock_of_this_machine_that_is_wrong_is_named() {
    let ahead = |server| Answer { clock_ahead_ms: 3_600_000, ..answer(server) };
    let found = all(&own(), &[ahead(2), ahead(3)], &[]);
    assert_eq!(
        of(&found, "clocks"),
        (CheckStatus::Fail, "differ from the median: this machine by -3600000 ms".into())
    );
}

#[test]
fn two_clocks_that_differ_do_not_say_which_one_is_wrong() {
    let ahead = |server| Answer { clock_ahead_ms: 3_600_000, ..answer(server) };
    let advice = |answers: &[Answer], failed: &[(u64, String)]| {
        let found = all(&own(), answers, failed).into_iter().find(|found| found.what == "clocks");
        let found = found.expect("the clocks are compared");
        assert_eq!(found.status, CheckStatus::Fail, "{found:?}");
        found.advice
    };
    let silent = [(3, "no connection".to_owned())];
    // Two clocks; two of three; two against two.
    for undecided in [
        advice(&[ahead(2)], &[]),
        advice(&[ahead(2)], &silent),
        advice(&[answer(2), ahead(4), ahead(5)], &[]),
    ] {
        assert!(undecided.contains("no majority of the clocks"), "{undecided}");
    }
    let decided = advice(&[answer(2), ahead(4)], &[]);
    assert!(decided.contains("leads nothing"), "{decided}");
}

#[test]
fn a_server_that_does_not_answer_fails_and_the_others_are_compared() {
    let found = all(&own(), &[answer(2)], &[(3, "no connection".into())]);
    assert_eq!(of(&found, "peers"), (CheckStatus::Fail, "server 3: no connection".into()));
    assert_eq!(of(&found, "rings").0, CheckStatus::Ok);
    let alone = all(&Own { peers: BTreeMap::new(), ..own() }, &[], &[]);
    assert_eq!(alone.len(), 1);
    assert_eq!(of(&alone, "peers").0, CheckStatus::Warn);
}

/// A server's configuration over a folder with the files of `switchward cluster certs`.
fn configured(folder: &Path, server: u64) -> ClusterConfig {
    ClusterConfig {
        roles: member::ProcessRole::all(),
        server,
        listen: Some("127.0.0.1:7401".parse().unwrap()),
        address: None,
        ca_file: folder.join("ca.crt"),
        cert_file: folder.join("server-2.crt"),
        key_file: folder.join("server-2.key"),
        peers: Vec::new(),
        verify_minutes: None,
        voters: member::VOTERS,
        fixed_peers: false,
        clocks: member::ServerClocks::Compared,
    }
}

const CLUSTER: [u8; 16] = [0x2a; 16];

/// An authority, and a certificate of server 2 that is valid for this many days.
fn certificates(folder: &Path, days: u32) {
    let validity = Validity { from: SystemTime::now(), days };
    let authority = Authority::generate(&CLUSTER, validity).unwrap();
    let issued = authority.issue(&CLUSTER, &PeerName::Server(2), &[], validity).unwrap();
    let key = folder.join("server-2.key");
    if key.exists() {
        fs::remove_file(&key).unwrap();
    }
    fs::write(folder.join("ca.crt"), authority.cert_pem()).unwrap();
    fs::write(folder.join("server-2.crt"), issued.cert_pem).unwrap();
    switchward_store::write_secret(&key, issued.key_pem.as_bytes()).unwrap();
}

#[test]
fn the_certificate_of_the_cluster_is_judged_as_another_server_does() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let look = |config: &ClusterConfig| match certificate(config) {
        Ok((name, id, tls)) => judged(config, &name, &id, &tls),
        Err(found) => found,
    };
    let config = configured(folder.path(), 2);
    assert_eq!(look(&config).status, CheckStatus::Fail, "there are no files");
    certificates(folder.path(), 90);
    let found = look(&config);
    assert!(
        found.status == CheckStatus::Ok && found.said.contains("for server 2 of the cluster 2a2a"),
        "{found:?}"
    );
    let found = look(&configured(folder.path(), 3));
    assert!(found.status == CheckStatus::Fail && found.said.contains("cluster.server is 3"), "{found:?}");
    certificates(other.path(), 90);
    let foreign = ClusterConfig { ca_file: other.path().join("ca.crt"), ..configured(folder.path(), 2) };
    let found = look(&foreign);
    assert!(found.status == CheckStatus::Fail && found.said.contains("is not accepted"), "{found:?}");
    certificates(folder.path(), 7);
    assert_eq!(look(&config).status, CheckStatus::Warn, "it must be replaced soon");
}

#[test]
fn the_data_folder_must_be_that_of_the_certificate() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    let own = ClusterIdentity { cluster: Id(CLUSTER), server: 2 };
    let status = |own| folder(&path, own).map(|found| found.status);
    assert_eq!(status(own), Some(CheckStatus::Warn), "there is none yet");
    let data = DataDir::open(&path).unwrap();
    data.claim(own).unwrap();
    assert_eq!(status(own), None, "while the folder is in use, too");
    assert_eq!(status(ClusterIdentity { server: 3, ..own }), Some(CheckStatus::Fail));
    assert_eq!(data.identity().boot, 1, "it was not opened");
}
