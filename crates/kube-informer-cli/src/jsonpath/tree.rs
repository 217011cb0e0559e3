//! What a template consists of, once it is read: texts, paths and ranges, one after the other.

/// A part of a template.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// To be written as it is.
    Text(String),
    /// To be looked up and written.
    Path(Vec<Node>),
    /// What follows, up to `end`, is done for each result.
    Range {
        over: Vec<Node>,
        /// Where the pieces of the range end: at its `End`, or behind the last piece.
        end: usize,
        /// Where it goes on afterwards. A range that is never closed goes on behind the last range in it that is, or
        /// with its own first piece.
        resume: usize,
    },
    /// Closes a range.
    End,
}

/// A step of a path, and where in the template it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) step: Step,
    pub(super) at: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Node>>),
    Filter(Filter),
}

/// `[from:to:step]`; `[n]` is `[n:n+1]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    /// Whether `to` was not written, but follows from a single index.
    pub(super) single: bool,
    pub(super) step: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) left: Vec<Node>,
    /// Without it, it is enough that `left` finds something.
    pub(super) test: Option<(Operator, Vec<Node>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
