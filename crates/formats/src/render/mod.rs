//! Findings as text and as JSON.

mod json;
mod text;

pub use json::render_json;
pub(crate) use json::string;
pub use text::{Segment, Style, render_segments};
