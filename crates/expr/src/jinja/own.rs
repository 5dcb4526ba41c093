//! Our own filters: minijinja has none of the name, or one that gives another text than Jinja2's.

use minijinja::value::{Kwargs, Rest, Value, ValueOrKwargs, from_args};
use minijinja::{Error, ErrorKind};

/// `truncate(length=255, killwords=false, end='...', leeway=5)`: cut at a word's end, or anywhere.
pub(super) fn truncate(text: &str, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args: Vec<Value> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    let (length, killwords, end, leeway, named) =
        from_args::<(Option<usize>, Option<bool>, Option<&str>, Option<usize>, Kwargs)>(&args)?;
    let length = given(length, &named, "length")?.unwrap_or(255);
    let killwords = given(killwords, &named, "killwords")?.unwrap_or(false);
    let end = match end {
        Some(end) => end.to_owned(),
        None => named.get::<Option<String>>("end")?.unwrap_or_else(|| "...".to_owned()),
    };
    let leeway = given(leeway, &named, "leeway")?.unwrap_or(5);
    named.assert_all_used()?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text.to_owned());
    }
    let available = length.checked_sub(end.chars().count());
    let available = available.ok_or_else(|| {
        Error::new(ErrorKind::InvalidOperation, "the end is longer than the whole text may be")
    })?;
    let kept: String = text.chars().take(available).collect();
    let kept =
        if killwords { kept.as_str() } else { kept.rsplit_once(' ').map_or(&*kept, |(words, _)| words) };
    Ok(format!("{kept}{end}"))
}

fn given<T>(value: Option<T>, named: &Kwargs, name: &str) -> Result<Option<T>, Error>
where
    Option<T>: for<'a> minijinja::value::ArgType<'a, Output = Option<T>>,
{
    match value {
        Some(value) => Ok(Some(value)),
        None => named.get::<Option<T>>(name),
    }
}

/// `wordcount`: runs of letters and digits.
pub(super) fn wordcount(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count()
}

/// `center(width=80)`: spaces around, one less before than after.
pub(super) fn center(text: &str, width: Option<usize>, named: Kwargs) -> Result<String, Error> {
    let width = given(width, &named, "width")?.unwrap_or(80);
    named.assert_all_used()?;
    let length = text.chars().count();
    let padding = width.saturating_sub(length);
    let before = padding / 2 + (padding & width & 1);
    Ok(format!("{}{text}{}", " ".repeat(before), " ".repeat(padding - before)))
}

/// `indent(width=4, first=false, blank=false)`: the width is a number of spaces, or the text to put there.
pub(super) fn indent(value: &Value, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args: Vec<Value> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    let (width, first, blank, named) =
        from_args::<(Option<Value>, Option<bool>, Option<bool>, Kwargs)>(&args)?;
    let width = match width {
        Some(width) => Some(width),
        None => named.get::<Option<Value>>("width")?,
    };
    let first = given(first, &named, "first")?.unwrap_or(false);
    let blank = given(blank, &named, "blank")?.unwrap_or(false);
    named.assert_all_used()?;
    let step = match width {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(i64::try_from(width)?).unwrap_or(0)),
        },
    };
    let text = value.to_string();
    let mut made = String::new();
    // a text that ends with a line end has one more, blank line
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            made.push('\n');
        }
        let wanted = if at == 0 { first } else { blank || !line.is_empty() };
        if wanted {
            made.push_str(&step);
        }
        made.push_str(line);
    }
    Ok(made)
}
