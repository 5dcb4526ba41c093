//! JSON Logic: conditions that are written as JSON, such as `{">": [{"var": "order.total"}, 100]}`.
//!
//! An expression is checked when it is parsed, and evaluated with fuel. What it cannot compute is an error,
//! also where the reference implementation goes on with a value that is not a number.

mod number;
mod operator;
mod parse;
mod problem;
mod rule;
mod run;
mod text;

use minicbor::{CborLen, Decode, Decoder, Encode, Encoder, encode::Write};
use serde_json::Value;

use crate::fuel::Fuel;
use crate::limits::LOGIC_BYTES_MAX;
pub use problem::{LogicArity, LogicError, LogicFault, LogicProblem};
pub use rule::{LogicRead, LogicReads};

/// An expression of JSON Logic. Its stored form is its JSON, compact and with sorted keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logic {
    source: String,
    rule: rule::Rule,
    reads: LogicReads,
}

impl Logic {
    /// Compiles any expression: an operation, a list of expressions or a literal.
    ///
    /// # Errors
    /// As [`LogicProblem`] says, with the JSON pointer of what is wrong.
    pub fn parse(value: &Value) -> Result<Self, LogicError> {
        let (rule, reads) = parse::parse(value)?;
        let source = value.to_string();
        if source.len() > LOGIC_BYTES_MAX {
            return Err(LogicError::at_root(LogicProblem::TooLong));
        }
        Ok(Self { source, rule, reads })
    }

    /// Compiles a condition: an operation, or true or false.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and for anything else.
    pub fn guard(value: &Value) -> Result<Self, LogicError> {
        let is_condition = match value {
            Value::Bool(_) => true,
            Value::Object(map) => !map.is_empty(),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        };
        if is_condition { Self::parse(value) } else { Err(LogicError::at_root(LogicProblem::NoCondition)) }
    }

    /// Compiles a condition that is written as JSON text.
    ///
    /// # Errors
    /// As [`guard`](Self::guard), and if the text is not JSON, or nested much deeper than an expression may
    /// be.
    pub fn guard_json(text: &str) -> Result<Self, LogicError> {
        match serde_json::from_str(text) {
            Ok(value) => Self::guard(&value),
            Err(_) => Err(LogicError::at_root(LogicProblem::NotJson)),
        }
    }

    /// The expression as compact JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns true if it is the literal `true`, which holds over all data.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.rule == rule::Rule::Literal(Value::Bool(true))
    }

    /// The paths of the data that it reads.
    #[must_use]
    pub fn reads(&self) -> &LogicReads {
        &self.reads
    }

    /// Evaluates it over this data; the work is taken from `fuel`, at most
    /// [`LOGIC_FUEL_MAX`](crate::limits::LOGIC_FUEL_MAX).
    ///
    /// # Errors
    /// As [`LogicFault`] says.
    pub fn evaluate(&self, data: &Value, fuel: &Fuel) -> Result<Value, LogicFault> {
        let run = run::Run::new(fuel);
        let value = run.value(&self.rule, data)?;
        run.owned(value)
    }

    /// Evaluates it over this data to a truth value: null, zero, and empty texts and lists count as false.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn holds(&self, data: &Value, fuel: &Fuel) -> Result<bool, LogicFault> {
        let run = run::Run::new(fuel);
        run.value(&self.rule, data).map(|value| number::is_truthy(&value))
    }

    /// Reads the stored form.
    fn read(source: &str) -> Result<Self, &'static str> {
        if source.len() > LOGIC_BYTES_MAX {
            return Err("an expression of JSON Logic is too long");
        }
        let value: Value = serde_json::from_str(source).map_err(|_| "JSON Logic is no JSON")?;
        let read = Self::parse(&value).map_err(|_| "an expression of JSON Logic is invalid")?;
        if read.source == source { Ok(read) } else { Err("JSON Logic is not in its stored form") }
    }
}

impl<C> Encode<C> for Logic {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(&self.source)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Logic {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        Self::read(d.str()?).map_err(minicbor::decode::Error::message)
    }
}

impl<C> CborLen<C> for Logic {
    fn cbor_len(&self, context: &mut C) -> usize {
        self.source.cbor_len(context)
    }
}

#[cfg(test)]
mod tests;
