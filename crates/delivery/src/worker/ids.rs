//! Ids as JSON: a session by its printed name, the others as numbers.

/// A tenant, as its number.
pub(super) mod tenant {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchward_machine::TenantId;

    /// Writes the number.
    pub(in crate::worker) fn serialize<S: Serializer>(id: &TenantId, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u32(id.0)
    }

    /// Reads the number.
    pub(in crate::worker) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TenantId, D::Error> {
        u32::deserialize(from).map(TenantId)
    }
}

/// An open item, as its number.
pub(super) mod item {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchward_machine::OpenId;

    /// Writes the number.
    pub(in crate::worker) fn serialize<S: Serializer>(id: &OpenId, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(id.0)
    }

    /// Reads the number.
    pub(in crate::worker) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OpenId, D::Error> {
        u64::deserialize(from).map(OpenId)
    }
}

/// A session, as its printed name.
pub(super) mod session {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchward_machine::SessionId;

    /// Writes the printed name.
    pub(in crate::worker) fn serialize<S: Serializer>(id: &SessionId, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(id)
    }

    /// Reads the printed name.
    pub(in crate::worker) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SessionId, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(|_| D::Error::custom("not the name of a session"))
    }
}
