//! How a value that is recorded to a key merges with the key's old value.

use std::collections::BTreeMap;

use minicbor::{CborLen, Decode, Encode};
use serde_json::Value;

use crate::fuel::Fuel;
use crate::limits::LIST_ITEMS_MAX;
use crate::value::{self, Amount};

/// How a new value merges with the old one. See `docs/formats-conversation-operations.md#reducers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Reducer {
    /// The new value replaces the old one.
    #[n(0)]
    Overwrite,
    /// Items are appended to a list.
    #[n(1)]
    Append,
    /// Items that the list does not hold yet are appended.
    #[n(2)]
    UniqueAppend,
    /// Keys are added to a dictionary or replaced in it; not deeper.
    #[n(3)]
    MergeDict,
    /// A number is added to a number.
    #[n(4)]
    Increment,
}

impl Reducer {
    /// Every reducer, in order.
    pub const ALL: [Self; 5] =
        [Self::Overwrite, Self::Append, Self::UniqueAppend, Self::MergeDict, Self::Increment];

    /// The source's name of it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::UniqueAppend => "unique_append",
            Self::MergeDict => "merge_dict",
            Self::Increment => "increment",
        }
    }

    /// The reducer of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reducer| reducer.word() == word)
    }
}

/// What a key may hold. See `docs/formats-conversation-operations.md#reducers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum DataType {
    /// A text.
    #[n(0)]
    String,
    /// An integer or a number with a fraction.
    #[n(1)]
    Number,
    /// A list, of anything.
    #[n(2)]
    List,
    /// A dictionary.
    #[n(3)]
    Dict,
    /// True or false.
    #[n(4)]
    Boolean,
    /// Anything, null too.
    #[n(5)]
    Any,
}

impl DataType {
    /// Every type, in order.
    pub const ALL: [Self; 6] = [Self::String, Self::Number, Self::List, Self::Dict, Self::Boolean, Self::Any];

    /// The source's name of it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::List => "list",
            Self::Dict => "dict",
            Self::Boolean => "boolean",
            Self::Any => "any",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.word() == word)
    }

    /// Returns true if a value is of this type. Null is only of the type `any`.
    #[must_use]
    pub fn covers(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::List => value.is_array(),
            Self::Dict => value.is_object(),
            Self::Boolean => value.is_boolean(),
            Self::Any => true,
        }
    }
}

/// Why a value cannot be recorded; the old value stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// The value, or an item to append, is not of the declared type.
    #[error("is not of the type {}", .0.word())]
    Type(DataType),
    /// The reducer cannot add such a value: `increment` takes numbers, `merge_dict` dictionaries.
    #[error("cannot be recorded with {}", .0.word())]
    New(Reducer),
    /// The reducer cannot add to the old value.
    #[error("cannot be added with {} to the current value", .0.word())]
    Old(Reducer),
    /// A list of more than [`LIST_ITEMS_MAX`] items, or a number out of range.
    #[error("makes the value too large")]
    TooLarge,
}

/// The key's value after `new` was recorded to it; an absent `old` and null are the same.
///
/// `append` and `unique_append` add the items of a list one by one and any other value as one item, and make a list of
/// an old scalar or dictionary (`tests/corpus/conversation/sentences.tsv#4b-17`,
/// `tests/corpus/conversation/sentences.tsv#7c-5`); duplicates are compared by value, so `1` equals `1.0`. Their
/// declared type is `list` or `any` for items of any kind; another type is that of the items. Every other reducer takes
/// values of the declared type only. Whole numbers are added exactly.
///
/// The work is taken from `fuel`; what it lacks is for the caller to notice.
///
/// # Errors
/// As [`Clash`] says.
pub fn reduce(
    old: Option<&Value>,
    reducer: Reducer,
    ty: DataType,
    new: Value,
    fuel: &Fuel,
) -> Result<Value, Clash> {
    let old = old.filter(|old| !old.is_null());
    match reducer {
        Reducer::Append | Reducer::UniqueAppend => return append(old, reducer, ty, new, fuel),
        Reducer::Overwrite | Reducer::MergeDict | Reducer::Increment => {}
    }
    if !ty.covers(&new) {
        return Err(Clash::Type(ty));
    }
    match reducer {
        Reducer::MergeDict => merge(old, new, fuel),
        Reducer::Increment => increment(old, &new),
        Reducer::Overwrite | Reducer::Append | Reducer::UniqueAppend => Ok(new),
    }
}

/// Why no value of type `of` can ever be recorded, whatever the key's value; `of` is `None` for null. Returns `None` for
/// `any`, for which that is not known.
#[must_use]
pub fn never(reducer: Reducer, ty: DataType, of: Option<DataType>) -> Option<Clash> {
    let like = match of {
        None => Value::Null,
        Some(DataType::String) => Value::from(""),
        Some(DataType::Number) => Value::from(0),
        Some(DataType::List) => Value::Array(Vec::new()),
        Some(DataType::Dict) => Value::Object(serde_json::Map::new()),
        Some(DataType::Boolean) => Value::from(true),
        Some(DataType::Any) => return None,
    };
    reduce(None, reducer, ty, like, &Fuel::unlimited()).err()
}

fn append(
    old: Option<&Value>,
    reducer: Reducer,
    ty: DataType,
    new: Value,
    fuel: &Fuel,
) -> Result<Value, Clash> {
    if let Some(old) = old {
        fuel.spend_reads(old, 2);
    }
    let mut list = match old {
        None => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    let items = if let Value::Array(items) = new { items } else { vec![new] };
    let mut known = (reducer == Reducer::UniqueAppend).then(|| Known::of(&list, fuel));
    for item in items {
        if ty != DataType::List && !ty.covers(&item) {
            return Err(Clash::Type(ty));
        }
        if known.as_mut().is_some_and(|known| !known.is_new(&list, &item)) {
            continue;
        }
        if list.len() >= LIST_ITEMS_MAX {
            return Err(Clash::TooLarge);
        }
        list.push(item);
    }
    Ok(Value::Array(list))
}

/// The items of a list by what equal ones have in common, so that an item is compared with few of them.
struct Known<'f> {
    positions: BTreeMap<Vec<u8>, Vec<usize>>,
    fuel: &'f Fuel,
}

/// How often an item is read, at least, for its bytes and to find them among the others.
const BUCKET_READS: u64 = 4;

impl<'f> Known<'f> {
    fn of(list: &[Value], fuel: &'f Fuel) -> Self {
        let mut known = Self { positions: BTreeMap::new(), fuel };
        for (position, item) in list.iter().enumerate() {
            known.bucket(item).push(position);
        }
        known
    }

    /// The positions of the items that may equal this one.
    fn bucket(&mut self, item: &Value) -> &mut Vec<usize> {
        self.fuel.spend_reads(item, BUCKET_READS);
        let mut key = Vec::new();
        value::bucket(item, &mut key);
        self.positions.entry(key).or_default()
    }

    /// Returns true if the list has no item that equals this one, which then counts as its next.
    fn is_new(&mut self, list: &[Value], item: &Value) -> bool {
        let fuel = self.fuel;
        let bucket = self.bucket(item);
        let mut same = bucket.iter().filter_map(|position| list.get(*position));
        let is_new = !same.any(|known| {
            fuel.spend_reads(item, 1);
            value::equal(known, item)
        });
        if is_new {
            bucket.push(list.len());
        }
        is_new
    }
}

fn merge(old: Option<&Value>, new: Value, fuel: &Fuel) -> Result<Value, Clash> {
    if let Some(old) = old {
        fuel.spend_reads(old, 2);
    }
    let Value::Object(new) = new else { return Err(Clash::New(Reducer::MergeDict)) };
    let mut merged = match old {
        None => serde_json::Map::new(),
        Some(Value::Object(old)) => old.clone(),
        Some(_) => return Err(Clash::Old(Reducer::MergeDict)),
    };
    merged.extend(new);
    Ok(Value::Object(merged))
}

fn increment(old: Option<&Value>, new: &Value) -> Result<Value, Clash> {
    let number = |value: &Value| value.is_number().then(|| Amount::of(value)).flatten();
    let more = number(new).ok_or(Clash::New(Reducer::Increment))?;
    let Some(old) = old else { return Ok(new.clone()) };
    let old = number(old).ok_or(Clash::Old(Reducer::Increment))?;
    old.plus(more).and_then(Amount::value).ok_or(Clash::TooLarge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::fuel::weight;

    fn reduce(old: Option<&Value>, reducer: Reducer, ty: DataType, new: Value) -> Result<Value, Clash> {
        super::reduce(old, reducer, ty, new, &Fuel::unlimited())
    }

    fn put(old: Value, reducer: Reducer, new: Value) -> Result<Value, Clash> {
        reduce(Some(&old), reducer, DataType::Any, new)
    }

    #[test]
    fn words_are_the_sources() {
        assert_eq!(
            Reducer::ALL.map(Reducer::word),
            ["overwrite", "append", "unique_append", "merge_dict", "increment"]
        );
        assert_eq!(DataType::ALL.map(DataType::word), ["string", "number", "list", "dict", "boolean", "any"]);
        assert_eq!(Reducer::from_word("merge_dict"), Some(Reducer::MergeDict));
        assert_eq!(
            (DataType::from_word("dict"), DataType::from_word("object")),
            (Some(DataType::Dict), None)
        );
    }

    #[test]
    fn overwrite_replaces() {
        assert_eq!(put(json!([1]), Reducer::Overwrite, json!("x")), Ok(json!("x")));
        assert_eq!(reduce(None, Reducer::Overwrite, DataType::Any, json!(null)), Ok(json!(null)));
    }

    #[test]
    fn append_adds_items_and_wraps_what_is_no_list() {
        assert_eq!(reduce(None, Reducer::Append, DataType::List, json!("a")), Ok(json!(["a"])));
        assert_eq!(put(json!(null), Reducer::Append, json!("a")), Ok(json!(["a"])));
        assert_eq!(put(json!(["a"]), Reducer::Append, json!(["a", "b"])), Ok(json!(["a", "a", "b"])));
        assert_eq!(put(json!("a"), Reducer::Append, json!("b")), Ok(json!(["a", "b"])));
        assert_eq!(put(json!({"k": 1}), Reducer::Append, json!([[1]])), Ok(json!([{"k": 1}, [1]])));
    }

    #[test]
    fn unique_append_skips_what_is_there() {
        assert_eq!(
            put(json!([1, "a"]), Reducer::UniqueAppend, json!(["a", 1.0, "b", "b"])),
            Ok(json!([1, "a", "b"]))
        );
        assert_eq!(put(json!("a"), Reducer::UniqueAppend, json!("a")), Ok(json!(["a"])));
        assert_eq!(put(json!([[1]]), Reducer::UniqueAppend, json!([[1], 1])), Ok(json!([[1], 1])));
    }

    #[test]
    fn merge_dict_is_shallow() {
        let (old, new) = (json!({"a": {"x": 1}, "b": 1}), json!({"a": {"y": 2}, "c": 3}));
        assert_eq!(put(old, Reducer::MergeDict, new), Ok(json!({"a": {"y": 2}, "b": 1, "c": 3})));
        assert_eq!(put(json!([]), Reducer::MergeDict, json!({})), Err(Clash::Old(Reducer::MergeDict)));
        assert_eq!(put(json!({}), Reducer::MergeDict, json!([])), Err(Clash::New(Reducer::MergeDict)));
        assert_eq!(reduce(None, Reducer::MergeDict, DataType::Dict, json!({"a": 1})), Ok(json!({"a": 1})));
    }

    #[test]
    fn increment_adds_numbers_and_nothing_else() {
        assert_eq!(put(json!(1), Reducer::Increment, json!(2)), Ok(json!(3)));
        assert_eq!(put(json!(1), Reducer::Increment, json!(0.5)), Ok(json!(1.5)));
        assert_eq!(
            put(json!(i64::MAX), Reducer::Increment, json!(1)),
            Ok(json!(9_223_372_036_854_775_808_u64))
        );
        assert_eq!(reduce(None, Reducer::Increment, DataType::Number, json!(-2)), Ok(json!(-2)));
        assert_eq!(put(json!("1"), Reducer::Increment, json!(1)), Err(Clash::Old(Reducer::Increment)));
        assert_eq!(put(json!(1), Reducer::Increment, json!("1")), Err(Clash::New(Reducer::Increment)));
        assert_eq!(put(json!(u64::MAX), Reducer::Increment, json!(1)), Err(Clash::TooLarge));
        assert_eq!(put(json!(f64::MAX), Reducer::Increment, json!(f64::MAX)), Err(Clash::TooLarge));
    }

    #[test]
    fn a_value_of_another_type_is_a_clash() {
        let values = [json!("x"), json!(1), json!([]), json!({}), json!(true), json!(null)];
        for (at, ty) in DataType::ALL.into_iter().enumerate() {
            for (of, value) in values.iter().enumerate() {
                let reduced = reduce(None, Reducer::Overwrite, ty, value.clone());
                let fits = at == of || ty == DataType::Any;
                assert_eq!(reduced, if fits { Ok(value.clone()) } else { Err(Clash::Type(ty)) });
            }
        }
        let texts = |new| reduce(None, Reducer::Append, DataType::String, new);
        assert_eq!(
            (texts(json!(["a"])), texts(json!(1))),
            (Ok(json!(["a"])), Err(Clash::Type(DataType::String)))
        );
        assert_eq!(
            reduce(None, Reducer::MergeDict, DataType::Number, json!(1)),
            Err(Clash::New(Reducer::MergeDict))
        );
    }

    #[test]
    fn what_can_never_be_recorded_is_known_beforehand() {
        let number = |of| never(Reducer::Increment, DataType::Number, of);
        assert_eq!((number(Some(DataType::Number)), number(Some(DataType::Any))), (None, None));
        assert_eq!(number(Some(DataType::String)), Some(Clash::Type(DataType::Number)));
        assert_eq!(number(None), Some(Clash::Type(DataType::Number)));
        let any = |reducer, of| never(reducer, DataType::Any, of);
        assert_eq!(any(Reducer::MergeDict, Some(DataType::List)), Some(Clash::New(Reducer::MergeDict)));
        assert_eq!(any(Reducer::MergeDict, Some(DataType::Dict)), None);
        assert_eq!(any(Reducer::Append, Some(DataType::Boolean)), None);
        assert_eq!(never(Reducer::Append, DataType::List, Some(DataType::String)), None);
    }

    #[test]
    fn a_list_does_not_grow_for_ever() {
        let full = json!(vec![0; LIST_ITEMS_MAX]);
        assert_eq!(put(full.clone(), Reducer::Append, json!(1)), Err(Clash::TooLarge));
        assert_eq!(put(full.clone(), Reducer::UniqueAppend, json!(0)), Ok(full));
    }

    /// Numbers that are the same only as floats are compared exactly, as all others are.
    #[test]
    fn large_numbers_are_unique_by_their_value() {
        let (even, odd) = (9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64);
        let list = json!([even, [odd], {"a": odd}]);
        let more = json!([odd, even, [even], [odd], {"a": odd}, {"a": even}]);
        let all = json!([even, [odd], {"a": odd}, odd, [even], {"a": even}]);
        assert_eq!(put(list, Reducer::UniqueAppend, more), Ok(all));
    }

    /// The work grows with the items, not with their square: each item is compared with its own like alone.
    #[test]
    fn long_lists_are_made_unique_with_little_work() {
        let old = Value::from((0..5_000).collect::<Vec<u32>>());
        let new = Value::from((2_500..10_000).collect::<Vec<u32>>());
        let fuel = Fuel::new(u64::MAX);
        let made = super::reduce(Some(&old), Reducer::UniqueAppend, DataType::List, new.clone(), &fuel);
        assert_eq!(made, Ok(Value::from((0..10_000).collect::<Vec<u32>>())));
        let spent = u64::MAX - fuel.left();
        assert!(spent <= 10 * (weight(&old) + weight(&new)), "{spent}");
    }

    #[test]
    fn a_copy_of_the_old_value_is_paid_for() {
        let old = json!({"text": "x".repeat(1_000)});
        for (reducer, new) in [(Reducer::Append, json!(1)), (Reducer::MergeDict, json!({"a": 1}))] {
            let fuel = Fuel::new(1_000_000);
            super::reduce(Some(&old), reducer, DataType::Any, new, &fuel).unwrap();
            assert!(1_000_000 - fuel.left() >= 2 * weight(&old));
        }
    }

    /// A value with numbers that are written in several ways.
    fn item() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-2_i32..3).prop_map(Value::from),
            (-2_i32..3).prop_map(|whole| json!(f64::from(whole))),
            (-2_i32..3).prop_map(|whole| json!(f64::from(whole) / 2.0)),
            Just(json!(-0.0)),
            "[ab1]{0,2}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ]
        .prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn unique_lists_are_those_of_comparing_all_items(
            old in prop::collection::vec(item(), 0..8),
            new in prop::collection::vec(item(), 0..8),
        ) {
            let mut all = old.clone();
            for item in &new {
                if !all.iter().any(|known| value::equal(known, item)) {
                    all.push(item.clone());
                }
            }
            prop_assert_eq!(put(json!(old), Reducer::UniqueAppend, json!(new)), Ok(json!(all)));
        }

        #[test]
        fn sums_are_those_of_integers(a in any::<i32>(), b in any::<i32>()) {
            prop_assert_eq!(put(json!(a), Reducer::Increment, json!(b)), Ok(json!(i64::from(a) + i64::from(b))));
        }

        #[test]
        fn unique_lists_stay_unique(items in prop::collection::vec(0..5_u8, 0..20)) {
            let Ok(Value::Array(made)) = reduce(None, Reducer::UniqueAppend, DataType::List, json!(items)) else { panic!() };
            for item in &items {
                prop_assert_eq!(made.iter().filter(|it| **it == json!(item)).count(), 1);
            }
        }
    }
}
