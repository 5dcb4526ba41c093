//! Three servers as processes: they form a cluster, and lose nothing when some of them die.

mod delivering;
mod dev;
mod gateways;
mod leader_kills;
mod mailing;
mod operating;
mod renewing;
mod restore;
mod roll;
mod servers;
mod survival;
