//! Work that blocks, such as reads of the disk, on threads for it.

#[cfg(feature = "simulation")]
pub(crate) use crate::simulation::blocking;
#[cfg(not(feature = "simulation"))]
pub(crate) use tokio::task::spawn_blocking as blocking;
