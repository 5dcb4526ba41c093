//! What this module relies on of minijinja and minijinja does not promise: an update fails here until it was reviewed.

use minijinja::machinery::{Instruction, Instructions};

use super::compile::compile;
use super::guard::{PLAIN, TOUCHED};

/// The version whose syntax tree, code generator and filters were reviewed.
const REVIEWED: &str = "3.0.5";
/// The lock files of the two workspaces, from this crate's folder.
const LOCK_FILES: [&str; 2] = ["../../Cargo.lock", "../../tests/fuzz/Cargo.lock"];

/// Every statement, expression and operator of the subset, with values that are not known when it is compiled.
const SAMPLES: &[&str] = &[
    "text{{ a + b }}{{ a ~ b }}{{ a * b }}{{ a - b }}{{ a / b }}{{ a // b }}{{ a % b }}{{ a ** b }}{{ -a }}",
    "{{ a == b }}{{ a != b }}{{ a < b }}{{ a <= b }}{{ a > b }}{{ a >= b }}{{ a in b }}{{ a not in b }}",
    "{{ 1 < a < b }}{{ not a }}{{ a and b or c }}{{ a if b else c }}{{ a if b }}",
    "{{ a[0] }}{{ a['k'] }}{{ a.k }}{{ a[1:2] }}{{ a[:] }}{{ a[::-1] }}",
    "{{ [a, b] }}{{ (a, b) }}{{ {'k': a} }}{{ [a + b, [a]] }}",
    "{{ a|upper }}{{ a|join(b + c) }}{{ a is odd }}{{ a is eq(b + c) }}{{ range(a) }}{{ a.get(b, c) }}",
    "{{ dict(k=a) }}{{ dict(*a, **b) }}{{ dict(k=a, **b) }}{{ a.b.c() }}{{ a[0](b) }}",
    "{% for x in a + b %}{{ x }}{% else %}none{% endfor %}{% for x in a if x == b %}{{ x }}{% endfor %}",
    "{% for x, y in a recursive %}{{ loop(x) }}{{ loop(y) ~ a }}{% endfor %}",
    "{% if a + b %}x{% elif a == c %}y{% else %}z{% endif %}",
    "{% set x = a ~ b %}{% set x, y = a %}{% set x %}{{ a ~ b }}{% endset %}{% set x | upper %}y{% endset %}",
    "{% with x = a + b %}{{ x ~ a }}{% endwith %}{% filter upper %}x{{ a ~ b }}{% endfilter %}",
    "{% autoescape a == b %}x{{ a }}{% endautoescape %}{% do dict(k=a ~ b) %}{% raw %}{{ x }}{% endraw %}",
    "{{ 'x' * 9 }}{{ 'x' ~ 'y' }}{{ [1] + [2] }}{{ [1, 2] == [1, 2] }}{{ 'abc'[1:] }}{{ 'abc'[1] }}",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Does the same work for values of any size, or a guard is called in it.
    Bounded,
    /// Makes a value of others: its size is charged at once.
    Makes,
    /// Compares two values: the second one is charged before.
    Compares,
    /// Looks for one part of a value: a text is charged before, by its length.
    Searches,
    /// May make or write any number of bytes: a guard does it instead.
    Replaced,
}

/// Without `_`, so that a new instruction does not compile until it was reviewed.
fn work(instruction: &Instruction<'_>) -> Work {
    match instruction {
        Instruction::EmitRaw(_) | Instruction::Slice | Instruction::Mul => Work::Replaced,
        Instruction::Add
        | Instruction::StringConcat
        | Instruction::BuildList(Some(_))
        | Instruction::BuildTuple(_)
        | Instruction::BuildMap(_) => Work::Makes,
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => Work::Compares,
        Instruction::GetItem => Work::Searches,
        Instruction::StoreLocal(_)
        | Instruction::Lookup(_)
        | Instruction::GetAttr(_)
        | Instruction::SetAttr(_)
        | Instruction::LoadConst(_)
        | Instruction::BuildKwargs(_)
        | Instruction::MergeKwargs(_)
        | Instruction::BuildList(None)
        | Instruction::UnpackList(_)
        | Instruction::UnpackLists(_)
        | Instruction::Sub
        | Instruction::Div
        | Instruction::IntDiv
        | Instruction::Rem
        | Instruction::Pow
        | Instruction::Neg
        | Instruction::Not
        | Instruction::ApplyFilter(..)
        | Instruction::PerformTest(..)
        | Instruction::Emit
        | Instruction::PushLoop(_)
        | Instruction::PushWith
        | Instruction::Iterate(_)
        | Instruction::PushDidNotIterate
        | Instruction::PopFrame
        | Instruction::PopLoopFrame
        | Instruction::Jump(_)
        | Instruction::JumpIfFalse(_)
        | Instruction::JumpIfFalseOrPop(_)
        | Instruction::JumpIfTrueOrPop(_)
        | Instruction::PushAutoEscape
        | Instruction::PopAutoEscape
        | Instruction::BeginCapture(_)
        | Instruction::EndCapture
        | Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_)
        | Instruction::DupTop
        | Instruction::DiscardTop
        | Instruction::FastRecurse
        | Instruction::Swap => Work::Bounded,
    }
}

fn calls(code: &Instructions<'_>, at: Option<u32>, guard: &str) -> bool {
    let instruction = at.and_then(|at| code.get(at));
    matches!(instruction, Some(Instruction::CallFunction(name, Some(1))) if *name == guard)
}

/// Returns true if the instruction is one that minijinja adds itself: it counts what a filtered loop keeps, or collects
/// arguments beside a `*` in a call, which the called function charges.
fn is_own(code: &Instructions<'_>, at: u32) -> bool {
    let next = code.get(at + 1);
    match code.get(at) {
        Some(Instruction::Add) => matches!(next, Some(Instruction::Jump(_))),
        Some(Instruction::BuildList(_)) => matches!(next, Some(Instruction::UnpackLists(_))),
        _ => false,
    }
}

fn is_guarded(code: &Instructions<'_>, at: u32, work: Work) -> bool {
    match work {
        Work::Bounded => true,
        Work::Makes => calls(code, Some(at + 1), PLAIN) || is_own(code, at),
        Work::Compares => calls(code, at.checked_sub(1), PLAIN),
        // The guard, the name of the part, and this.
        Work::Searches => calls(code, at.checked_sub(2), TOUCHED),
        Work::Replaced => false,
    }
}

#[test]
fn no_instruction_that_makes_or_compares_values_is_without_its_guard() {
    let mut met = Vec::new();
    for source in SAMPLES {
        let code = compile(source).unwrap();
        let numbered = (0..).map_while(|at| code.get(at).map(|instruction| (at, instruction)));
        for (at, instruction) in numbered {
            let work = work(instruction);
            assert!(is_guarded(&code, at, work), "{source}: {instruction:?} at {at} has no guard");
            met.push(work);
        }
    }
    for work in [Work::Makes, Work::Compares, Work::Searches] {
        assert!(met.iter().filter(|one| **one == work).count() > 3, "the samples do too little: {work:?}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it reads the lock files")]
fn an_update_of_minijinja_was_reviewed() {
    for file in LOCK_FILES {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap().replace('\r', "");
        let (_, entry) = text.split_once("name = \"minijinja\"\nversion = \"").unwrap();
        let (version, _) = entry.split_once('"').unwrap();
        assert_eq!(
            version, REVIEWED,
            "{file} has another minijinja: do what the section `Updates` of expr/src/jinja.rs says"
        );
    }
}
