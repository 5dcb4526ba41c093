//! Named maxima of reads. Units are in the names.

/// Entries of a list, or rows of an export, that one call looks at; beyond it the page is shorter, and its token continues from
/// there.
pub const LOOKED_AT_MAX: usize = 20_000;
