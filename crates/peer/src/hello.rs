//! What two servers know of each other before the first request.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::name::hex;
use crate::request::Traffic;

/// The protocol of this program: the high byte is the major version, and servers of different major versions refuse each
/// other; the low byte is the minor version.
pub const PROTOCOL: u16 = 0x0100;

/// A server's identity, which both servers send first on every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The id of the cluster.
    pub cluster: [u8; 16],
    /// The server's number in the cluster.
    pub server: u64,
    /// The id of its data folder.
    pub folder: [u8; 16],
    /// How often the server was started on this folder. A lower number than before means that the folder is an old copy.
    pub boot: u64,
    /// Drawn at this start. The same `boot` with another id means that there are two copies of the folder.
    pub boot_id: [u8; 16],
    /// What it speaks: [`PROTOCOL`].
    pub protocol: u16,
    /// The lowest feature level at which it can write.
    pub lowest_level: u32,
    /// The highest feature level that it knows.
    pub highest_level: u32,
    /// The digest of the ids of its key ring's keys.
    pub keys: [u8; 32],
    /// Its wall clock at the handshake, milliseconds since 1970. The transport sets it when it sends.
    pub clock_ms: i64,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Requests(Traffic),
    Stream,
}

impl Purpose {
    fn byte(self) -> u8 {
        match self {
            Self::Requests(Traffic::Control) => 1,
            Self::Requests(Traffic::Bulk) => 2,
            Self::Stream => 3,
            Self::Requests(Traffic::Commands) => 4,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        let requests = [Traffic::Control, Traffic::Bulk, Traffic::Commands].map(Self::Requests);
        requests.into_iter().chain([Self::Stream]).find(|it| it.byte() == byte)
    }

    /// The word for log lines.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Requests(Traffic::Control) => "control",
            Self::Requests(Traffic::Bulk) => "bulk",
            Self::Requests(Traffic::Commands) => "commands",
            Self::Stream => "stream",
        }
    }
}

/// The body of the first frame in either direction. Stored form. Fields have this order, numbers are big-endian; bytes after
/// them are ignored, so that later versions can add fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
    /// The server for which it is meant.
    pub(crate) to: u64,
    pub(crate) purpose: Purpose,
}

/// The length of a greeting's fixed fields.
const GREETING_BYTES: usize = 2 + 16 + 8 + 16 + 8 + 16 + 4 + 4 + 32 + 8 + 8 + 1;

impl Greeting {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(GREETING_BYTES);
        out.put_u16(self.hello.protocol);
        out.put_slice(&self.hello.cluster);
        out.put_u64(self.hello.server);
        out.put_slice(&self.hello.folder);
        out.put_u64(self.hello.boot);
        out.put_slice(&self.hello.boot_id);
        out.put_u32(self.hello.lowest_level);
        out.put_u32(self.hello.highest_level);
        out.put_slice(&self.hello.keys);
        out.put_i64(self.hello.clock_ms);
        out.put_u64(self.to);
        out.put_u8(self.purpose.byte());
        out.freeze()
    }

    /// Reads a greeting. Returns `None` if the bytes are too few, or the purpose is unknown.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.len() < GREETING_BYTES {
            return None;
        }
        let from = &mut bytes;
        let protocol = from.get_u16();
        let (cluster, server, folder) = (array(from), from.get_u64(), array(from));
        let (boot, boot_id) = (from.get_u64(), array(from));
        let (lowest_level, highest_level) = (from.get_u32(), from.get_u32());
        let (keys, clock_ms) = (array(from), from.get_i64());
        let hello = Hello {
            cluster,
            server,
            folder,
            boot,
            boot_id,
            protocol,
            lowest_level,
            highest_level,
            keys,
            clock_ms,
        };
        Some(Self { hello, to: from.get_u64(), purpose: Purpose::of(from.get_u8())? })
    }
}

/// The next `N` bytes, which are there.
fn array<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let mut array = [0; N];
    from.copy_to_slice(&mut array);
    array
}

/// Checks what needs no certificate and no state.
///
/// # Errors
/// The two servers cannot talk; the text reads the same on both.
pub(crate) fn check(own: &Hello, theirs: &Hello) -> Result<(), String> {
    let (one, other) = (own.server, theirs.server);
    let [own_major, their_major] = [own, theirs].map(|hello| hello.protocol.to_be_bytes()[0]);
    if own_major != their_major {
        return Err(format!(
            "server {one} speaks version {own_major} of the protocol, server {other} version {their_major}"
        ));
    }
    if own.cluster != theirs.cluster {
        let [own, theirs] = [own, theirs].map(|hello| hex(&hello.cluster));
        return Err(format!("server {one} belongs to the cluster {own}, server {other} to {theirs}"));
    }
    if one == other {
        return Err(format!("both servers have the number {one}"));
    }
    if own.keys != theirs.keys {
        return Err(format!("the key rings of server {one} and server {other} have different keys"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting() -> Greeting {
        let hello = Hello {
            cluster: [1; 16],
            server: 2,
            folder: [3; 16],
            boot: 4,
            boot_id: [9; 16],
            protocol: PROTOCOL,
            lowest_level: 5,
            highest_level: 6,
            keys: [6; 32],
            clock_ms: -7,
        };
        Greeting { hello, to: 8, purpose: Purpose::Requests(Traffic::Bulk) }
    }

    #[test]
    fn a_greeting_is_read_back_also_with_more_behind_it() {
        let mut bytes = greeting().encode().to_vec();
        assert_eq!(bytes.len(), GREETING_BYTES);
        assert_eq!(Greeting::decode(&bytes[..GREETING_BYTES - 1]), None);
        assert_eq!(Greeting::decode(&bytes), Some(greeting()));
        bytes.extend(b"more");
        assert_eq!(Greeting::decode(&bytes), Some(greeting()));
        bytes[GREETING_BYTES - 1] = 9;
        assert_eq!(Greeting::decode(&bytes), None);
    }

    /// `BLESS=1` rewrites the file.
    #[test]
    fn a_greeting_has_the_bytes_of_greeting_v1_hex() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/greeting.v1.hex");
        let bytes = greeting().encode();
        let frame = crate::frame::Frame::of(crate::frame::Op::Hello, bytes.clone());
        let text = format!("{}\n{}\n", hex(&frame.head()), hex(&bytes));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(file).unwrap());
    }

    #[test]
    fn a_minor_version_may_differ_and_nothing_else() {
        let own = greeting().hello;
        let theirs = Hello {
            server: 9,
            boot: 1,
            boot_id: [0; 16],
            lowest_level: 0,
            highest_level: 0,
            folder: [0; 16],
            protocol: PROTOCOL + 1,
            ..own.clone()
        };
        assert_eq!(check(&own, &theirs), Ok(()));
        for (changed, expected) in [
            (Hello { protocol: PROTOCOL + 0x0100, ..theirs.clone() }, "server 9 version 2"),
            (Hello { cluster: [0xab; 16], ..theirs.clone() }, "server 9 to abab"),
            (Hello { server: 2, ..theirs.clone() }, "both servers have the number 2"),
            (Hello { keys: [0; 32], ..theirs.clone() }, "different keys"),
        ] {
            let refused = check(&own, &changed).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_greeting_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _decoded = Greeting::decode(&bytes);
        }
    }
}
