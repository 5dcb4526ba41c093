//! What a decision may read.

use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::TenantId;

use crate::catalogue::Tenant;
use crate::seal::KeyRing;
use crate::{IndexKey, Key, ReadRows, Row};

/// The rows of one shard, as they stand after the last decision.
pub trait View: ReadRows {
    /// The row of this key.
    ///
    /// # Errors
    /// The row cannot be read; the caller must not decide anything.
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError>;

    /// The rows whose keys begin with `prefix`, from `after` on (exclusive, if given), in the order of their keys, until
    /// `visit` breaks off.
    ///
    /// # Errors
    /// A row cannot be read.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError>;

    /// What opens the secrets in the rows.
    fn ring(&self) -> &KeyRing;

    /// The bug that is planted in what is decided and applied on these rows; `None` outside of a simulation.
    #[cfg(feature = "planted")]
    fn planted(&self) -> Option<crate::planted::Bug> {
        None
    }
}

/// A row cannot be read, or is not what its key says. The shard that sees it must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewError(pub String);

impl std::fmt::Display for ViewError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ViewError {}

/// The tenant of a number, read from the catalogue's rows.
///
/// # Errors
/// A row cannot be read.
pub fn tenant_numbered(catalogue: &dyn View, id: TenantId) -> Result<Option<Tenant>, ViewError> {
    let prefix = IndexKey::numbered(id);
    let mut name = None;
    catalogue.scan(&prefix, None, &mut |entry, _| {
        let rest = entry.as_bytes().get(prefix.len()..).unwrap_or_default();
        name = std::str::from_utf8(rest).ok().map(str::to_owned);
        ControlFlow::Break(())
    })?;
    let Some(name) = name else { return Ok(None) };
    let row = catalogue.row(&Key::tenant(&name))?;
    Ok(row.and_then(|row| if let Row::Tenant(tenant) = &*row { Some(tenant.clone()) } else { None }))
}
