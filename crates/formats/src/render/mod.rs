//! Findings as text and as JSON.

mod json;
mod text;

pub use json::render_json;
pub use text::{Segment, Style, render_segments, render_text};
