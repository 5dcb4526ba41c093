//! The built server under SIGKILL, power cuts and failing syncs, seen through its public API by 64 callers of two
//! tenants.
//!
//! A caller keeps a request until it is answered: if the connection breaks, it sends the same request id to the next server.
//! Answered requests must have taken effect exactly once.
//!
//! | Variable | What it says | Otherwise |
//! |---|---|---|
//! | `CRASH_SEED` | the seed of all chances; every test prints its own | drawn |
//! | `CRASH_KILLS` | kills under sessions | 200 |
//! | `CRASH_CUTS` | power cuts | 20 |
//! | `CRASH_HEAVY_KILLS`, `CRASH_HEAVY_CUTS` | the same while the log is purged | 12, 12 |
//! | `CRASH_RUNS` | runs of each limit | 20 |
//! | `CRASH_FULL` | how often the disk is filled under load | 10 |
//! | `CRASH_FIRST_STARTS` | new data folders whose first start is killed or loses its power | 20 |
//! | `CRASH_RIG` | `loop` or `layer`: how the power is cut | `loop` where it can be mounted |
//! | `CRASH_SERVER` | another binary of the server | the one built with the tests |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
mod crew;
mod first_start;
mod front;
mod full;
mod kill;
mod limits;
mod plan;
mod power;
mod rig;
mod rng;
mod scratch;
mod server;
mod sync_error;
mod tenants;
mod verify;
