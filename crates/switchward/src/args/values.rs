//! Values of arguments, and their parsers.

use std::time::Duration;
use switchward_api::v1::{self, quorum::Rule};

/// A weight; `None` is the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight(pub(crate) Option<u32>);

/// A limit; `None` is the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// Parses a label such as `team=web`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses how many must approve: `any`, `all` or a number.
pub(crate) fn quorum(text: &str) -> Result<v1::Quorum, String> {
    let rule = match text {
        "any" => Rule::Any(true),
        "all" => Rule::All(true),
        number => {
            let least = number.parse().ok().filter(|least| (1..=1_000).contains(least));
            Rule::AtLeast(least.ok_or("write any, all or a number from 1 to 1000")?)
        }
    };
    Ok(v1::Quorum { rule: Some(rule) })
}

/// Parses a limit: a number, or `default`.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    if text == "default" {
        return Ok(Limit(None));
    }
    text.parse()
        .map(|limit| Limit(Some(limit)))
        .map_err(|_| "write a number, 0 for no limit, or default".to_owned())
}

/// Parses the weight of a tenant: a number, or `default`. The server checks the range.
pub(super) fn weight(text: &str) -> Result<Weight, String> {
    if text == "default" {
        return Ok(Weight(None));
    }
    text.parse().map(|weight| Weight(Some(weight))).map_err(|_| "write a number, or default".to_owned())
}

/// Bytes of each unit.
const SIZES: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Parses a limit in bytes: `1048576`, `20GiB`, or `default`.
pub(super) fn limit_bytes(text: &str) -> Result<Limit, String> {
    let unit = SIZES.iter().find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)));
    let wrong = || "write a number of bytes such as 20GiB or 1048576, 0 for no limit, or default".to_owned();
    let Some((number, bytes)) = unit else { return limit(text).map_err(|_| wrong()) };
    let number = number.parse().ok().and_then(|number: u64| number.checked_mul(bytes));
    number.map(|limit| Limit(Some(limit))).ok_or_else(wrong)
}

/// Parses a time such as `2026-01-31T12:00:00Z`.
pub(super) fn time(text: &str) -> Result<prost_types::Timestamp, String> {
    text.parse().map_err(|_| "write a time such as 2026-01-31T12:00:00Z".to_owned())
}

/// Seconds of each unit.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// Parses a duration such as `90s` or `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let shape = || "write a number and s, m, h or d, such as 90s or 1h30m".to_owned();
    let (mut seconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(shape)?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.chars().next().ok_or_else(shape)?;
        let (_, of_unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(shape)?;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*of_unit));
        seconds = part.and_then(|part| part.checked_add(seconds)).ok_or_else(shape)?;
        rest = &tail[unit.len_utf8()..];
    }
    if seconds == 0 { Err(shape()) } else { Ok(Duration::from_secs(seconds)) }
}
