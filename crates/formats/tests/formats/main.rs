//! What the crate answers to sources: right ones, wrong ones, and hostile ones.

mod bounds;
mod checkpoint;
mod corpus;
mod documents;
mod golden;
mod hostile;
mod rendering;
mod support;
mod twins;
