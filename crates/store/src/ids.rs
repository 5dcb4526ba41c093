//! The names by which data folders and servers know each other.

use std::fmt::{self, Display};

/// The id of a data folder or of a cluster; shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

/// The cluster that a data folder belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// Drawn when the cluster is initialised.
    pub cluster: Id,
    /// The server's number in it, which no other server ever gets.
    pub server: u64,
}

/// What a server says about its data folder in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderIdentity {
    /// Drawn when the folder was created.
    pub folder: Id,
    /// How often the folder was opened, this time included.
    pub boot: u64,
    /// Drawn at this opening, so that two copies of a folder that were opened equally often differ.
    pub boot_id: Id,
    /// `None` for a server that stands alone.
    pub cluster: Option<ClusterIdentity>,
}

impl Id {
    /// Draws 128 random bits.
    pub(crate) fn draw() -> Self {
        Self(rand::random())
    }

    /// Reads 32 hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
        Some(Self(number.to_be_bytes()))
    }
}

impl Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl Display for ClusterIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "server {} of cluster {}", self.server, self.cluster)
    }
}
