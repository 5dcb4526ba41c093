//! The built server over a real Redis, with receivers that fail, while one or the other is killed, stopped or cut off.
//!
//! | Variable | What it says | Otherwise |
//! |---|---|---|
//! | `FAULTS_SECONDS` | how long faults are made | 45 |
//! | `FAULTS_SEED` | the seed of all chances; the test prints its own | drawn |
//! | `FAULTS_DOWN_SECONDS` | how long Redis is away | 20 |

mod apart;
mod away;
mod cluster;
mod faults;
mod neighbours;
mod receiver;
mod site;

/// A number of the environment, or what holds without it.
fn setting(name: &str, otherwise: u64) -> u64 {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return otherwise };
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}
