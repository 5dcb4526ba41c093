//! Slices, as in Python. The library's own panic if a negative step goes over an empty range.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Evaluates `value[start:stop:step]` as Python does: bounds may be absent or negative, and a step of 0 is an error.
pub(super) fn sliced(value: Value, start: Value, stop: Value, step: Value) -> Result<Value, Error> {
    let step = whole(&step)?.unwrap_or(1);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot slice by step size of 0"));
    }
    let (start, stop) = (whole(&start)?, whole(&stop)?);
    if let Some(text) = value.as_str() {
        let chars: Vec<char> = text.chars().collect();
        let picked = indices(chars.len(), start, stop, step).filter_map(|at| chars.get(at));
        return Ok(Value::from(picked.collect::<String>()));
    }
    if value.is_undefined() || value.is_none() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        let message = format!("value of type {} cannot be sliced", value.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let picked = indices(items.len(), start, stop, step).filter_map(|at| items.get(at).cloned());
    let picked: Vec<Value> = picked.collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(picked)) } else { Value::from(picked) })
}

fn whole(part: &Value) -> Result<Option<i128>, Error> {
    if part.is_none() || part.is_undefined() {
        return Ok(None);
    }
    i64::try_from(part.clone()).map(|part| Some(i128::from(part)))
}

/// The indices that a slice of `count` items takes, in its order.
fn indices(count: usize, start: Option<i128>, stop: Option<i128>, step: i128) -> impl Iterator<Item = usize> {
    let count = i128::try_from(count).unwrap_or(i128::MAX);
    let (least, most) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let within = |part: i128| if part < 0 { (part + count).max(least) } else { part.min(most) };
    let (first, last) = if step > 0 { (least, most) } else { (most, least) };
    let (start, stop) = (start.map_or(first, within), stop.map_or(last, within));
    let goes_on = move |at: &i128| if step > 0 { *at < stop } else { *at > stop };
    std::iter::successors(Some(start), move |at| at.checked_add(step))
        .take_while(goes_on)
        .filter_map(|at| usize::try_from(at).ok())
}
