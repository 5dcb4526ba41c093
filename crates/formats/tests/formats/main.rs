//! What the crate answers to sources: right ones, wrong ones, and hostile ones.

mod bounds;
mod checkpoint;
mod conversation;
mod conversation_bounds;
mod conversation_circles;
mod conversation_guards;
mod conversation_operations;
mod conversation_states;
mod corpus;
mod documents;
mod golden;
mod hostile;
mod rendering;
mod support;
mod twins;
mod typos;
