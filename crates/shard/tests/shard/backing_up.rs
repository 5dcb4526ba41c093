//! A backup that is taken on one server under load holds all that was acknowledged before it, also by other servers.

use std::collections::{BTreeMap, BTreeSet};
use switchward_state::{Key, Reply, Scope};
use switchward_store::{Backup, BackupFolder, BackupOf, DataDir};

use crate::ensemble::{Ensemble, insist};
use crate::joining::{Callers, Load, callers, verify};

#[test]
fn a_backup_of_any_server_has_what_was_acknowledged_before() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    let clusters: Vec<_> =
        ensemble.numbers().into_iter().map(|number| ensemble.cluster(number).clone()).collect();
    let root = tempfile::tempdir().unwrap();
    let before = Load::begin(&runtime, "before", &clusters, Callers::Insist);
    let load = Load::begin(&runtime, "load", &clusters, Callers::Insist);
    let acknowledged = runtime.block_on(async {
        before.goes_on(40).await;
        let acknowledged = before.end().await;
        for number in ensemble.numbers() {
            let rows = ensemble.cluster(number).cut().await.unwrap();
            load.goes_on(4).await;
            let folder = root.path().join(format!("backup-{number}"));
            let mut to = BackupFolder::create(&folder).unwrap();
            let of = BackupOf { program: "test".into(), taken_ms: 5, shards: 2 };
            let source = DataDir::open(root.path().join(format!("source-{number}"))).unwrap();
            let manifest = rows.write(&source, of, &mut to).unwrap();
            assert!(manifest.files.iter().all(|file| file.index.is_some() && file.digest.is_some()));
            to.finish(&manifest).unwrap();
        }
        verify(&ensemble, &load.end().await).await;
        assert_eq!(insist(ensemble.cluster(1), acknowledged[0].0.clone()).await, acknowledged[0].1);
        acknowledged
    });
    let (mut steps, mut tenant_of, mut last) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (command, reply) in &acknowledged {
        let (Scope::Session(id), Reply::Session { sequence, .. }) = (&command.scope, reply) else {
            panic!("a step of a session: {reply:?}")
        };
        // What a command did is kept under the session's sequence before it.
        steps.push((*id, last.insert(*id, *sequence).unwrap_or(0)));
        tenant_of.insert(*id, command.tenant);
    }
    for number in ensemble.numbers() {
        let backup = Backup::open(&root.path().join(format!("backup-{number}"))).unwrap();
        let mut keys = BTreeSet::new();
        for file in &backup.manifest().files {
            let read = backup.check(file, |key, _| {
                keys.insert(key.to_vec());
                Ok(())
            });
            read.unwrap();
        }
        for (id, before) in &steps {
            let turn = Key::history(tenant_of[id], *id, *before);
            assert!(keys.contains(turn.as_bytes()), "backup {number} lacks what {id} did after {before}");
        }
    }
}
