//! What an expression is compiled to: a list of instructions for a machine with a stack of values.

use crate::number::Number;

#[derive(Debug)]
pub(crate) enum Instruction {
    Null,
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    /// The value of a name.
    Load(Box<str>),
    /// Collects the topmost values.
    Array(usize),
    /// Collects the topmost values under these keys.
    Object(Box<[Box<str>]>),
    Unary(Unary),
    Binary(Binary),
    /// `&&`: a falsy top becomes false and skips to the target, a truthy one is dropped.
    SkipUnlessTruthy(usize),
    /// `||`: a truthy top becomes true and skips to the target, a falsy one is dropped.
    SkipIfTruthy(usize),
    /// The right side of `&&` and `||`.
    Truth,
    Property(Box<str>),
    Index,
    /// `[from:to]`, and which of its ends were given.
    Slice {
        from: bool,
        to: bool,
    },
    /// Refuses a value that cannot be called before its arguments are evaluated.
    Callable,
    /// Calls what lies below that many arguments.
    Call(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Plus,
    Minus,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    In,
}

/// A compiled expression.
#[derive(Debug, Default)]
pub(crate) struct Program {
    instructions: Vec<Instruction>,
    offsets: Vec<usize>,
}

impl Program {
    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Where in its text an instruction came from.
    pub(crate) fn offset(&self, index: usize) -> usize {
        self.offsets.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn push(&mut self, instruction: Instruction, offset: usize) -> usize {
        self.instructions.push(instruction);
        self.offsets.push(offset);
        self.instructions.len() - 1
    }

    /// Makes an earlier jump lead to the next instruction.
    pub(crate) fn land(&mut self, jump: usize) {
        let next = self.instructions.len();
        if let Some(Instruction::SkipUnlessTruthy(target) | Instruction::SkipIfTruthy(target)) =
            self.instructions.get_mut(jump)
        {
            *target = next;
        }
    }
}
