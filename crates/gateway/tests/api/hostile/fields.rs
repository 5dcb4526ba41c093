//! Every field of every request with every difficult value.

use prost_reflect::{FieldDescriptor, Kind, Value};

use super::values::{Path, hard, leaves, put, shown};
use super::{Attack, CLOCK, Target, by, protocols, targets_that_end};
use crate::rpcs::all;

pub(super) const SENT: usize = 8_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_with_every_hard_value() {
    let mut attack = Attack::start("fields").await;
    let mut turn = 0;
    for mut target in targets_that_end(&attack).await {
        every_field(&mut attack, &mut target, &mut turn).await;
    }
    attack.end(SENT).await;
}

/// Needs its own harness, in which nothing falls due however far the clock advances.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_with_every_hard_value() {
    let mut attack = Attack::start("clock").await;
    let rpc = all().into_iter().find(|rpc| rpc.method == CLOCK).expect("a row");
    let mut target = Target::of(&attack, rpc).await;
    let mut turn = 0;
    for _ in 0..4 {
        every_field(&mut attack, &mut target, &mut turn).await;
    }
    let now = switchward_shard::Clock::now(&attack.harness.node.clock).0;
    assert!(now < 253_402_300_800_000, "{now} has no JSON");
    attack.end(400).await;
}

/// Returns true if a value is an unknown value of an enum.
fn means_nothing(field: &FieldDescriptor, value: &Value) -> bool {
    match (field.kind(), value) {
        (Kind::Enum(of), Value::EnumNumber(number)) => of.get_value(*number).is_none(),
        _ => false,
    }
}

/// Returns true if the update mask leaves the field out.
fn unasked(target: &Target, path: &Path) -> bool {
    let fields = ["tenant.default_effect", "tenant.link_auth"];
    target.rpc.method == "UpdateTenant" && fields.contains(&shown(path).as_str())
}

async fn every_field(attack: &mut Attack, target: &mut Target, turn: &mut usize) {
    eprintln!("{}", target.rpc.method);
    for path in leaves(&target.rpc.descriptor().input()) {
        let field = path.last().expect("a field").clone();
        for (at, value) in hard(&field).into_iter().enumerate() {
            let mut message = target.good.clone();
            put(&mut message, &path, value.clone());
            let protocol = protocols(&target.rpc)[*turn % protocols(&target.rpc).len()];
            let what = format!("{}, hard value {at}, by {protocol:?}", shown(&path));
            let raw = by(protocol, &target.rpc, &message);
            let accepted = target.shoot(attack, raw, what.clone()).await.is_some();
            let odd = means_nothing(&field, &value) && !unasked(target, &path);
            assert!(!accepted || !odd, "{} accepted {what}", target.rpc.method);
            *turn += 1;
        }
    }
}
