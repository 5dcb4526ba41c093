//! Whether the rows plant a bug that the simulation of the engine must find.

/// True if these rows plant this bug of `planted::Bug`.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($rows:expr, $bug:ident) => {
        $rows.plants(switchward_state::planted::Bug::$bug)
    };
}

/// False: without the feature, no code of a planted bug is compiled.
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($rows:expr, $bug:ident) => {
        false
    };
}
