//! The results for sources: valid ones, wrong ones, and hostile ones.

mod bounds;
mod checkpoint;
mod conversation;
mod conversation_bounds;
mod conversation_cycles;
mod conversation_guards;
mod conversation_operations;
mod conversation_states;
mod corpus;
mod documented;
mod documents;
mod golden;
mod hostile;
mod native;
mod rendering;
mod support;
mod twins;
mod typos;
