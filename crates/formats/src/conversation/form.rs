//! The two ways in which a text refers to values of the data.

/// How a text refers to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `{{ gathered_data.key }}`.
    Jinja,
    /// `{gathered_data.key}`.
    Braces,
}

impl Form {
    /// An example of how a value of the data is read.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Jinja => "write a value of the data as `{{ gathered_data.KEY }}`",
            Self::Braces => "write a value of the data as `{gathered_data.KEY}`",
        }
    }
}
