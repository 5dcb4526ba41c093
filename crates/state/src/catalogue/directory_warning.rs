//! What a directory should not be like: facts, which the crate `messages` puts into words.

/// A part of a directory that leads to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryWarning {
    /// A name has no address behind it.
    NoAddress {
        /// The entry's name.
        name: String,
    },
    /// A list of an entry holds what is neither an address nor a name.
    UnknownMember {
        /// What it holds.
        member: String,
        /// Which of the entry's lists holds it.
        list: DirectoryList,
        /// The entry's name.
        name: String,
    },
    /// A name of the default audience has no address behind it.
    EmptyAudience {
        /// The name in the audience.
        name: String,
    },
}

/// A list of an entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryList {
    /// The people and names that the entry stands for.
    Members,
    /// The audience of its settings.
    Audience,
    /// The escalation of its settings.
    Escalation,
}

impl DirectoryList {
    /// All lists, in the order in which an entry has them.
    pub const ALL: [Self; 3] = [Self::Members, Self::Audience, Self::Escalation];
}
