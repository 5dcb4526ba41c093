//! Whether a bug is planted that the simulation must find.

/// True if this bug of `planted::Bug` is planted on this thread.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($bug:ident) => {
        crate::planted::is(crate::planted::Bug::$bug)
    };
}

/// False: without the feature, no code of a planted bug is compiled.
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}
