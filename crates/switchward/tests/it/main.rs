//! The built server over a real Redis, with receivers that fail, while one or the other is killed, stopped or cut off.
//!
//! | Variable | What it says | Otherwise |
//! |---|---|---|
//! | `FAULTS_SECONDS` | how long faults are made | 45 |
//! | `FAULTS_SEED` | the seed of all chances; the test prints its own | drawn |
//! | `FAULTS_DOWN_SECONDS` | how long Redis is away | 20 |
//! | `CLUSTER_FAULT_SEEDS` | the seeds whose faults a cluster of three has, as in `0..200` | `0..6` |
//! | `CLUSTER_FAULT_SECONDS` | no seed begins later than this | 600 |
//! | `CLUSTER_FAULT_WITHOUT_POWER_CUTS` | 0: where no power can be cut, the test fails; 1: it leaves power cuts out there | 1 |
//! | `LEADER_KILLS` | how often a leader is killed while mails and webhooks go out | 5 |
//! | `ROLL_OLD`, `ROLL_NEW` | the programs of the older and the newer version, see `make roll` | this version |
//! | `ROLL_LEVEL` | the feature level that the newer version raises the cluster to | that of the older one |

mod apart;
mod away;
mod cluster;
mod cluster_faults;
#[path = "../crash/rig/disk.rs"]
#[expect(dead_code, reason = "the crash test fills disks, too")]
mod disk;
mod faults;
#[path = "../cli/mail_server.rs"]
mod mail_server;
mod mail_sink;
mod neighbours;
mod receiver;
#[path = "../crash/scratch.rs"]
mod scratch;
mod site;

/// Where `scratch` finds the disks, as in the crash test.
mod rig {
    pub(crate) use crate::disk;
}

/// A number of the environment, or what holds without it.
fn setting(name: &str, otherwise: u64) -> u64 {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return otherwise };
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}
