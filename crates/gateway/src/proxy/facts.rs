//! What a server says of itself to those who look for mistakes in the set-up of a cluster: `switchward doctor` compares the
//! answers of all servers. It asks over a connection for calls, which a server takes from its own certificate too: the doctor
//! must never make the handshake of a server, because the others would take it for a second copy of that server.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use std::sync::Arc;
use std::time::Duration;

use super::head::FACTS_PATH;
use super::links::{Links, Question, ServerDialer};
use super::map::RouteServer;
use crate::limits::{FACTS_BYTES_MAX, FACTS_WAIT_MS, PROXY_DIAL_MS_MAX};

/// Sent form. A form byte, then parts by number.
const FORM: u8 = 1;

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerFacts {
    /// The version of its program.
    #[n(0)]
    pub version: String,
    /// The lowest feature level at which it can write.
    #[n(1)]
    pub lowest_level: u32,
    /// The highest feature level that it knows.
    #[n(2)]
    pub highest_level: u32,
    /// The feature level of the cluster as it knows it; 0 if it does not know it yet.
    #[n(3)]
    pub level: u32,
    /// Its own clock when it answered, milliseconds since 1970.
    #[n(4)]
    pub clock_ms: i64,
    /// Until when its certificate for the other servers is valid, milliseconds since 1970; `None` if it is not known.
    #[n(10)]
    pub certificate_expire_ms: Option<u64>,
    /// Free bytes of the disk of its data folder; `None` if it is not known.
    #[n(5)]
    pub disk_free_bytes: Option<u64>,
    /// Whether it refuses what needs space, because its disk is almost full.
    #[n(6)]
    pub disk_low: bool,
    /// The digest of the ids of its key ring's keys, hexadecimal digits.
    #[n(7)]
    pub keys: String,
    /// Whether it has a Redis, and whether it reaches it.
    #[n(8)]
    pub redis: RedisFacts,
    /// The servers of the cluster that it knows and that were not removed.
    #[n(9)]
    pub servers: Vec<RouteServer>,
}

/// What a server says of its Redis.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RedisFacts {
    /// It has none.
    #[n(0)]
    None,
    /// It has reached it just now.
    #[n(1)]
    Reached {
        /// The id that the process of this Redis has drawn at its start.
        #[n(0)]
        run_id: String,
        /// What the names of the keys in it begin with.
        #[n(1)]
        prefix: String,
    },
    /// It cannot reach it.
    #[n(2)]
    Failed {
        /// The error, for people.
        #[n(0)]
        why: String,
    },
}

/// Says what is true of this server now.
#[tonic::async_trait]
pub trait Facts: Send + Sync + 'static {
    /// The facts. Takes seconds at most.
    async fn facts(&self) -> ServerFacts;
}

impl ServerFacts {
    /// The bytes that are sent.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = vec![FORM];
        minicbor::encode(self, &mut out).expect("a vector can always be written to");
        out.into()
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (form, rest) = bytes.split_first().ok_or("it says nothing of itself")?;
        if *form != FORM {
            return Err(format!("what it says of itself has the unknown form {form}"));
        }
        minicbor::decode(rest).map_err(|error| format!("what it says of itself cannot be read: {error}"))
    }
}

/// Asks a server what it says of itself.
///
/// # Errors
/// It cannot be reached, is another server, or gives no answer in time; one line says why.
pub async fn ask_facts(dialer: Arc<dyn ServerDialer>, server: &RouteServer) -> Result<ServerFacts, String> {
    let wait = Duration::from_millis(PROXY_DIAL_MS_MAX + FACTS_WAIT_MS);
    let question = Question { path: FACTS_PATH, wait, bytes_max: FACTS_BYTES_MAX };
    ServerFacts::decode(&Links::new(dialer, 1).get(server, question).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_back_and_other_bytes_are_not() {
        let redis = RedisFacts::Reached { run_id: "3f".into(), prefix: "switchward".into() };
        let facts = ServerFacts {
            version: "1.2.3".into(),
            lowest_level: 1,
            highest_level: 2,
            level: 1,
            clock_ms: -5,
            certificate_expire_ms: Some(9),
            disk_free_bytes: Some(7),
            disk_low: false,
            keys: "0a".into(),
            redis,
            servers: vec![RouteServer { number: 2, address: "node-2:7401".into() }],
        };
        let bytes = facts.encode();
        assert_eq!(ServerFacts::decode(&bytes), Ok(facts));
        assert!(ServerFacts::decode(b"").is_err() && ServerFacts::decode(&bytes[1..]).is_err());
        assert!(ServerFacts::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
