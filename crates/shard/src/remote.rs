//! What a server asks of the leader of a shard that it does not lead itself: execute a command, confirm a read, take
//! a batch of timers.

mod forward;
mod message;
mod reads;
mod serve;
mod to_leaders;

pub use message::{
    Answer, LeaderQuestion, LeaderRequest, QUESTION, decode_answer, decode_asked, encode_answer, encode_asked,
};
pub use serve::serve;
pub use to_leaders::ToLeaders;

pub(crate) use forward::{LeaderWait, Remote};
pub(crate) use reads::ReadRounds;
