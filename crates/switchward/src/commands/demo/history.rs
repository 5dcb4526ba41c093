//! The recorded history: repeated events are one line with a count.

use jiff::Timestamp;
use prost_types::value::Kind;
use switchward_api::v1;
use switchward_messages::cli::demo as texts;

use crate::output::{clean, put};

/// Details that a reader wants, in order.
const DETAILS: [&str; 11] = [
    "definition",
    "version",
    "state",
    "answer",
    "capability",
    "reason",
    "kind",
    "decision",
    "gate",
    "gates",
    "subject",
];

/// Events that look the same to a reader.
struct Line {
    first: u64,
    last: u64,
    count: usize,
    time: String,
    what: String,
}

/// The lines of a history.
pub(super) fn lines(events: &[v1::SessionEvent]) -> Vec<String> {
    let mut lines: Vec<Line> = Vec::new();
    for event in events {
        let (time, what) = (clock_time(event), describe(event));
        match lines.last_mut().filter(|line| line.what == what && line.time == time) {
            Some(line) => {
                line.count += 1;
                line.last = event.sequence;
            }
            None => lines.push(Line { first: event.sequence, last: event.sequence, count: 1, time, what }),
        }
    }
    lines.into_iter().map(shown).collect()
}

fn shown(line: Line) -> String {
    let Line { first, last, count, time, what } = line;
    let range = if count == 1 { first.to_string() } else { format!("{first}-{last}") };
    let times = if count == 1 { String::new() } else { format!("  {}", texts::times(count)) };
    format!("{range:>7}  {time}  {what}{times}")
}

fn describe(event: &v1::SessionEvent) -> String {
    let mut text = format!("{:<22} {:<7}", clean(&event.r#type), clean(&event.by));
    for name in DETAILS {
        let value =
            event.data.as_ref().and_then(|data| data.fields.get(name)).and_then(|value| value.kind.as_ref());
        if let Some(Kind::StringValue(value)) = value {
            put(&mut text, format_args!(" {}", clean(value)));
        }
    }
    text.trim_end().to_owned()
}

/// The time of day, in UTC.
fn clock_time(event: &v1::SessionEvent) -> String {
    let time = event.time.as_ref().and_then(|time| Timestamp::from_second(time.seconds).ok());
    time.map(|time| time.strftime("%H:%M:%S").to_string()).unwrap_or_default()
}
