//! Where references lead: addresses and anchors inside one schema. Nothing outside of it is ever asked.

use std::collections::BTreeMap;

use url::Url;

use crate::text::cut;

/// The address of the dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Addresses that belong to dialects.
const DIALECTS: &str = "https://json-schema.org/";
/// Bytes of an address that a message repeats.
const SHOWN_ADDRESS_BYTES_MAX: usize = 100;

/// The schemas with an address inside one schema, which references are relative to.
pub(crate) struct Bases {
    bases: Vec<Base>,
    /// How many addresses there may be beside the first.
    max: usize,
    by_address: BTreeMap<String, usize>,
    /// Pointers by base and name.
    anchors: BTreeMap<(usize, String), String>,
}

struct Base {
    address: Url,
    pointer: String,
}

/// Where a reference leads.
pub(crate) struct Target {
    pub(crate) pointer: String,
    /// The name, if the reference has one instead of a pointer.
    pub(crate) anchor: Option<String>,
}

/// Checks a `$schema`.
///
/// # Errors
/// A sentence, if it is another dialect than 2020-12.
pub(crate) fn check_dialect(dialect: &str) -> Result<(), String> {
    if dialect.strip_suffix('#').unwrap_or(dialect) == DIALECT {
        return Ok(());
    }
    Err(format!("is {}: the one dialect here is {DIALECT}", cut(dialect, SHOWN_ADDRESS_BYTES_MAX)))
}

impl Bases {
    /// The whole schema under an address that no author writes, and how many there may be beside it.
    pub(crate) fn new(max: usize) -> Self {
        let address = Url::parse("json-schema:///").expect("the address is sound");
        let by_address = BTreeMap::from([(address.as_str().to_owned(), 0)]);
        Self {
            bases: vec![Base { address, pointer: String::new() }],
            max,
            by_address,
            anchors: BTreeMap::new(),
        }
    }

    /// Adds the schema at a pointer by its `$id`, and returns its number.
    ///
    /// # Errors
    /// A sentence, if the address cannot be read or is not free.
    pub(crate) fn identify(&mut self, around: usize, id: &str, pointer: &str) -> Result<usize, String> {
        let mut address = self.joined(around, id)?;
        address.set_fragment(None);
        if address.as_str().starts_with(DIALECTS) {
            return Err("is an address of a dialect".to_owned());
        }
        let number = self.bases.len();
        if number > self.max {
            return Err(format!("is one of more than {} addresses", self.max));
        }
        let known = self.by_address.get(address.as_str()).and_then(|known| self.bases.get(*known));
        if known.is_some_and(|known| known.pointer != pointer) {
            return Err("is the address of another part of the schema too".to_owned());
        }
        self.by_address.insert(address.as_str().to_owned(), number);
        self.bases.push(Base { address, pointer: pointer.to_owned() });
        Ok(number)
    }

    /// Adds the name of a part.
    ///
    /// # Errors
    /// A sentence, if another part has it.
    pub(crate) fn anchor(&mut self, base: usize, name: &str, pointer: &str) -> Result<(), String> {
        match self.anchors.insert((base, name.to_owned()), pointer.to_owned()) {
            Some(known) if known != pointer => {
                Err("is the anchor of another part of the schema too".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The target of a reference.
    ///
    /// # Errors
    /// A sentence, if it leads out of the schema, or its anchor is missing.
    pub(crate) fn target(&self, base: usize, reference: &str) -> Result<Target, String> {
        let mut address = self.joined(base, reference)?;
        let fragment = address.fragment().map(decoded).transpose()?.unwrap_or_default();
        address.set_fragment(None);
        let Some(base) = self.by_address.get(address.as_str()).copied() else {
            let shown = cut(reference, SHOWN_ADDRESS_BYTES_MAX);
            return Err(format!("{shown} leads out of the schema, and nothing is fetched"));
        };
        let start = &self.bases[base].pointer;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(Target { pointer: format!("{start}{fragment}"), anchor: None });
        }
        match self.anchors.get(&(base, fragment.clone())) {
            Some(pointer) => Ok(Target { pointer: pointer.clone(), anchor: Some(fragment) }),
            None => Err(format!("no part of the schema has the anchor {}", crate::text::named(&fragment))),
        }
    }

    fn joined(&self, base: usize, reference: &str) -> Result<Url, String> {
        self.bases[base]
            .address
            .join(reference)
            .map_err(|_| format!("{} cannot be read as an address", cut(reference, SHOWN_ADDRESS_BYTES_MAX)))
    }
}

/// A text whose `%` escapes are replaced.
///
/// # Errors
/// A sentence, if they make no UTF-8.
pub(crate) fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let escaped = others.get(..2).filter(|_| *first == b'%').and_then(hexadecimal);
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[2..] } else { others };
    }
    String::from_utf8(bytes).map_err(|_| "has escapes that are not UTF-8".to_owned())
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let &[high, low] = digits else { return None };
    u8::try_from(value(high)? * 16 + value(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases() -> Bases {
        let mut bases = Bases::new(2);
        let root = bases.identify(0, "http://example.com/a.json", "").unwrap();
        let item = bases.identify(root, "b/item.json", "/$defs/item").unwrap();
        bases.anchor(item, "here", "/$defs/item/not").unwrap();
        bases
    }

    fn pointer(base: usize, reference: &str) -> Result<String, String> {
        bases().target(base, reference).map(|target| target.pointer)
    }

    #[test]
    fn references_are_relative_to_the_schema_around_them() {
        assert_eq!(pointer(1, "#").as_deref(), Ok(""));
        assert_eq!(pointer(1, "#/$defs/a%25b~1c").as_deref(), Ok("/$defs/a%b~1c"));
        assert_eq!(pointer(1, "b/item.json").as_deref(), Ok("/$defs/item"));
        assert_eq!(pointer(2, "#/type").as_deref(), Ok("/$defs/item/type"));
        assert_eq!(pointer(2, "item.json#here").as_deref(), Ok("/$defs/item/not"));
        assert_eq!(pointer(2, "../a.json").as_deref(), Ok(""));
    }

    #[test]
    fn what_leads_out_is_refused() {
        for reference in [
            "other.json",
            "https://example.com/a.json",
            "file:///etc/passwd",
            "#there",
            "http://[",
            "#%FF",
            "b/",
        ] {
            assert!(pointer(1, reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn addresses_are_counted() {
        assert!(bases().identify(0, "c", "/x").is_err());
    }

    #[test]
    fn an_address_or_an_anchor_is_of_one_part() {
        let mut bases = Bases { max: 9, ..bases() };
        assert!(bases.identify(0, "http://example.com/a.json", "/x").is_err());
        assert!(bases.identify(0, "https://json-schema.org/draft/2020-12/schema", "/x").is_err());
        assert!(bases.anchor(2, "here", "/x").is_err());
        assert!(bases.anchor(1, "here", "/x").is_ok());
    }

    #[test]
    fn other_dialects_are_refused() {
        assert!(check_dialect(DIALECT).is_ok());
        assert!(check_dialect("https://json-schema.org/draft/2020-12/schema#").is_ok());
        assert!(check_dialect("http://json-schema.org/draft-07/schema#").is_err());
        assert!(check_dialect("").is_err());
    }
}
