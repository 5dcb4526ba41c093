//! Random changes of a tree: other numbers, texts and bytes, items that are repeated, removed or swapped, and parts of other
//! samples.

use switchward_testkit::Rng;

use super::tree::Item;

/// Numbers at the limits of what is encoded in 0, 1, 2, 4 and 8 bytes.
const LIMITS: [i128; 16] = [
    0,
    1,
    23,
    24,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    -1,
    -0x8000_0000_0000_0000,
];
/// Characters of one to four bytes, control characters, and those that JSON escapes.
const CHARACTERS: [char; 14] =
    ['a', 'Z', '0', '.', '@', '"', '\\', '\0', '\n', '\u{7f}', '\u{202e}', 'é', '漢', '🦀'];
/// Lengths at the limits of what the head of an item says in 0, 1, 2 and 4 bytes.
const LENGTHS: [usize; 7] = [1, 23, 24, 255, 256, 65_535, 65_536];
/// Texts of JSON, among them those that are not as a writer of JSON would write them.
const JSON: [&str; 14] = [
    "null",
    "true",
    "\"\"",
    "\"a\\u0000\\ud83e\\udd80\"",
    "[]",
    "[1, [2, {\"a\": [ ]}]]",
    "{\"b\": 1, \"a\": 2}",
    "{\"a\":1,\"a\":2}",
    "-0",
    "1.0",
    "1e300",
    "0.1e-7",
    "18446744073709551615",
    "18446744073709551616",
];

/// What the samples hold, from which changes are drawn.
pub(super) struct Pool {
    texts: Vec<String>,
    bytes: Vec<Vec<u8>>,
    items: Vec<Item>,
}

impl Pool {
    pub(super) fn of<'t>(samples: impl Iterator<Item = &'t Item>) -> Self {
        let mut pool = Self { texts: Vec::new(), bytes: Vec::new(), items: Vec::new() };
        for item in samples.flat_map(Item::all) {
            match item {
                Item::Text(text) => pool.texts.push(text.clone()),
                Item::Bytes(bytes) => pool.bytes.push(bytes.clone()),
                Item::Array(_) | Item::Map(_) => pool.items.push(item.clone()),
                Item::Number(_) | Item::Bool(_) | Item::Null => {}
            }
        }
        pool
    }

    /// The tree with one change, sometimes with a few.
    pub(super) fn changed(&self, tree: &Item, rng: &mut Rng) -> Item {
        let mut tree = tree.clone();
        for _ in 0..*rng.weighted(&[(1, 6), (2, 2), (3, 1)]) {
            let mut at = rng.below(tree.all().len());
            self.change(tree.nth(&mut at).unwrap(), rng);
        }
        tree
    }

    fn change(&self, item: &mut Item, rng: &mut Rng) {
        if rng.once_in(12) {
            *item = Item::Null;
            return;
        }
        match item {
            Item::Number(number) => *number = other_number(*number, rng),
            Item::Bool(bool) => *bool = !*bool,
            Item::Text(text) => *text = self.text(rng),
            Item::Bytes(bytes) => *bytes = self.other_bytes(bytes, rng),
            Item::Null => *item = self.item(rng),
            Item::Array(items) if rng.once_in(6) || items.is_empty() => items.push(self.item(rng)),
            Item::Array(items) => rearrange(items, rng),
            Item::Map(pairs) if pairs.is_empty() => pairs.push((self.item(rng), self.item(rng))),
            Item::Map(pairs) => rearrange(pairs, rng),
        }
    }

    /// Any item.
    fn item(&self, rng: &mut Rng) -> Item {
        match rng.below(8) {
            0 => Item::Bool(rng.once_in(2)),
            1 => Item::Array(Vec::new()),
            2 => Item::Text(self.text(rng)),
            3 => Item::Bytes(self.other_bytes(&[], rng)),
            4 => Item::Number(other_number(0, rng)),
            _ => rng.pick(&self.items).clone(),
        }
    }

    fn text(&self, rng: &mut Rng) -> String {
        match rng.below(10) {
            0 => String::new(),
            1 => "x".repeat(*rng.pick(&LENGTHS)),
            2..=4 => rng.pick(&self.texts).clone(),
            _ => (0..rng.below(31)).map(|_| *rng.pick(&CHARACTERS)).collect(),
        }
    }

    fn other_bytes(&self, bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
        let is_json = serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
        match rng.below(if is_json { 12 } else { 8 }) {
            0 => Vec::new(),
            1 => random(*rng.pick(&LENGTHS), rng),
            2 if !self.bytes.is_empty() => rng.pick(&self.bytes).clone(),
            2..=7 => random(bytes.len(), rng),
            8 => format!("{:e}", f64::from_bits(rng.bits())).into_bytes(),
            9 => serde_json::to_vec(&self.text(rng)).unwrap(),
            _ => rng.pick(&JSON).as_bytes().to_vec(),
        }
    }
}

fn random(length: usize, rng: &mut Rng) -> Vec<u8> {
    (0..length).map(|_| rng.bits().to_le_bytes()[0]).collect()
}

fn other_number(number: i128, rng: &mut Rng) -> i128 {
    let other = match rng.below(6) {
        0 => *rng.pick(&LIMITS),
        1 => number + 1,
        2 => number - 1,
        3 => i128::from(rng.bits() >> rng.below(64)),
        _ => i128::from(rng.between(0, 40)),
    };
    // As much as CBOR can say.
    other.clamp(-(1 << 64), (1 << 64) - 1)
}

/// Removes, repeats or swaps something, or ends the list early. It is not empty.
fn rearrange<T: Clone>(list: &mut Vec<T>, rng: &mut Rng) {
    let (at, other) = (rng.below(list.len()), rng.below(list.len()));
    match rng.below(5) {
        0 => drop(list.remove(at)),
        1 => list.insert(other, list[at].clone()),
        2 => list.swap(at, other),
        3 => list.truncate(at),
        _ => drop(list.pop()),
    }
}
