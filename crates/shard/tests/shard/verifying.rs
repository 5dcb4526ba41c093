//! The replicas of a group compare the digests of their rows, and one whose rows are wrong fails.

use std::ops::Bound;
use switchward_shard::{MemberStart, NotVerified, VerifyOutcome};
use switchward_state::Row;
use switchward_store::{GroupId, Record, StateOptions, StateStore};
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, answer, definition, session, start};
use crate::ensemble::{Ensemble, insist};
use crate::joining::{Callers, Load, callers, verify};
use crate::server::unlocked;

/// A row as its bytes.
#[derive(Clone)]
struct Raw(Vec<u8>);

impl Record for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self(bytes.to_vec()))
    }

    fn weight(&self) -> usize {
        self.0.len()
    }

    fn cache(&self) -> bool {
        false
    }
}

/// Removes one row of a history from the files of a server that does not run.
fn damage(ensemble: &Ensemble, number: u64, group: u64) {
    let data = unlocked(&ensemble.path(number));
    let states = StateStore::open(&data).unwrap();
    let state = states.group::<Raw>(GroupId(group), &StateOptions::default()).unwrap();
    let mut history = None;
    let each = |key: &[u8], row: &Raw| {
        let is_history = Row::decode(&row.0).is_ok_and(|row| matches!(row, Row::History(_)));
        history = is_history.then(|| key.to_vec());
        if is_history { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    state.scan(Bound::Unbounded, Bound::Unbounded, usize::MAX, each).unwrap();
    let (key, applied) = (history.expect("the group has a history"), state.applied().unwrap());
    state.apply([(key.as_slice().into(), None)], applied);
    state.begin_flush().unwrap().run().unwrap();
    state.persist().unwrap();
}

/// Keys of sessions in the first shard, which is the group 1.
fn keys(ensemble: &Ensemble, count: usize) -> Vec<String> {
    let lives = |key: &String| ensemble.cluster(1).shard_of(session(key).bucket()).number() == 1;
    (0..).map(|number| format!("session {number}")).filter(lives).take(count).collect()
}

#[test]
fn replicas_agree_under_load_whichever_server_asks() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    let clusters = ensemble.numbers().into_iter().map(|number| ensemble.cluster(number).clone());
    let load = Load::begin(&runtime, "verify", &clusters.collect::<Vec<_>>(), Callers::Strict);
    runtime.block_on(async {
        load.goes_on(20).await;
        let mut last = vec![0; ensemble.groups()];
        for number in ensemble.numbers() {
            for (group, last) in last.iter_mut().enumerate() {
                let seen = ensemble.cluster(number).verify(u64::try_from(group).unwrap()).await.unwrap();
                assert_eq!((seen.agreeing(), seen.differs()), (vec![1, 2, 3], false), "{seen:?}");
                assert!(seen.digest.is_some() && seen.index > *last, "each takes an entry of its own");
                *last = seen.index;
                load.goes_on(4).await;
            }
        }
        assert_eq!(ensemble.cluster(1).verify(99).await, Err(NotVerified::NoGroup(99)));
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn a_server_that_is_down_is_no_difference() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    ensemble.kill(3);
    runtime.block_on(async {
        until("the others lead", async || ensemble.shard(1, 1).read().await.is_ok()).await;
        let seen = ensemble.cluster(1).verify(1).await.unwrap();
        assert_eq!((seen.agreeing(), seen.differs()), (vec![1, 2], false));
        let third = seen.replicas.iter().find(|replica| replica.server == 3).unwrap();
        assert!(matches!(third.outcome, VerifyOutcome::Unreachable { .. }), "{third:?}");
    });
    ensemble.assert_sound();
}

#[test]
fn a_replica_whose_rows_are_wrong_fails_alone_and_stays_failed() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let gate = definition(DEPLOY_GATE);
    let keys = keys(&ensemble, 3);
    runtime.block_on(async {
        for key in &keys {
            insist(ensemble.cluster(1), start(&gate, key)).await;
        }
        ensemble.agree().await;
    });
    // Its rows are all on disk then.
    ensemble.shut_down(3);
    damage(&ensemble, 3, 1);
    ensemble.begin(3, MemberStart::Resume).unwrap();
    runtime.block_on(async {
        let seen = ensemble.cluster(2).verify(1).await.unwrap();
        assert_eq!((seen.agreeing(), seen.differing()), (vec![1, 2], vec![3]), "{seen:?}");
        let failed = ensemble.shard(3, 1);
        until("its replica has failed", async || failed.group().failed().is_some()).await;
        let why = failed.group().failed().unwrap_or_default();
        assert!(why.starts_with(&format!("its rows are wrong: at entry {}", seen.index)), "{why}");
        until("the status says so", async || {
            let status = ensemble.cluster(1).status().await.unwrap();
            let replica = status.groups[1].replicas.iter().find(|replica| replica.server == 3).cloned();
            replica.is_some_and(|replica| replica.failed.as_deref() == Some(why))
        })
        .await;
        assert_eq!(ensemble.cluster(3).failed(), 1, "its other groups go on");
        insist(ensemble.cluster(2), answer(&keys[0], "by two", "yes")).await;
        let other = ensemble.cluster(3).verify(2).await.unwrap();
        assert!(!other.differs(), "{other:?}");
    });
    ensemble.kill(3);
    ensemble.begin(3, MemberStart::Resume).unwrap();
    assert_eq!(ensemble.cluster(3).failed(), 1, "its files are still wrong");
    runtime.block_on(async {
        let seen = ensemble.cluster(1).verify(1).await.unwrap();
        let third = seen.replicas.iter().find(|replica| replica.server == 3).unwrap();
        let VerifyOutcome::Unreachable { why } = &third.outcome else { panic!("{third:?}") };
        assert!(why.starts_with("its rows are wrong"), "{why}");
    });
    ensemble.assert_sound();
}
