//! Precedence climbing over tokens, writing instructions as it goes: every token is looked at once, so parsing
//! is linear in the length of the expression.

use super::precedence::{Infix, infix, sign};
use super::program::{Binary, Instruction, Program};
use super::token::{Kind, Token, Tokens};
use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::limits::Budget;
use crate::number::Number;

/// What may begin an operand.
const OPERAND: &str = "!, (, +, -, [, false, identifier, null, number, string, true, {";
/// What may follow one.
const OPERATOR: &str = "!=, &&, (, *, **, +, -, ., /, <, <=, ==, >, >=, [, in, ||";

/// Parses a whole text; offsets count from its beginning.
pub(crate) fn parse_all(source: &str, levels: usize) -> Outcome<Program> {
    let mut parser = Parser::new(source, 0, levels)?;
    parser.expression()?;
    match parser.current {
        None => Ok(parser.program),
        Some(token) => Err(parser.unexpected(token, OPERATOR)),
    }
}

/// Parses up to the `}` that ends an interpolation, and tells where that stands in the source. The source
/// itself begins at offset `base` of its string.
pub(crate) fn parse_until_brace(source: &str, base: usize, levels: usize) -> Outcome<(Program, usize)> {
    let mut parser = Parser::new(source, base, levels)?;
    parser.expression()?;
    match parser.current {
        Some(token) if token.text == "}" => Ok((parser.program, token.start)),
        Some(token) => Err(parser.unexpected(token, OPERATOR)),
        None => Err(Error::syntax("unterminated ${..} expression").at(base)),
    }
}

struct Parser<'s> {
    tokens: Tokens<'s>,
    current: Option<Token<'s>>,
    program: Program,
    base: usize,
    level: usize,
    levels: usize,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, base: usize, levels: usize) -> Outcome<Parser<'s>> {
        let tokens = Tokens::new(source, base);
        let mut parser =
            Parser { tokens, current: None, program: Program::default(), base, level: 0, levels };
        parser.advance()?;
        Ok(parser)
    }

    fn expression(&mut self) -> Outcome<()> {
        self.binary(0)
    }

    /// An operand and every operator behind it that binds at least as tightly as `loosest`.
    fn binary(&mut self, loosest: u8) -> Outcome<()> {
        self.level += 1;
        if self.level > self.levels {
            return Err(Error::exceeded(Budget::Depth, self.levels as u64).at(self.here()));
        }
        self.operand()?;
        while let Some(token) = self.current
            && let Some((binding, infix)) = infix(token.text)
            && binding >= loosest
        {
            self.advance()?;
            let offset = self.base + token.start;
            match infix {
                Infix::And => {
                    let jump = self.program.push(Instruction::SkipUnlessTruthy(0), offset);
                    self.right_of_logic(jump, binding + 1, offset)?;
                }
                Infix::Or => {
                    let jump = self.program.push(Instruction::SkipIfTruthy(0), offset);
                    self.right_of_logic(jump, binding + 1, offset)?;
                }
                Infix::Binary(Binary::Power) => {
                    // Right-associative: the right side may hold the same operator.
                    self.binary(binding)?;
                    self.program.push(Instruction::Binary(Binary::Power), offset);
                }
                Infix::Binary(operation) => {
                    self.binary(binding + 1)?;
                    self.program.push(Instruction::Binary(operation), offset);
                }
            }
        }
        self.level -= 1;
        Ok(())
    }

    fn right_of_logic(&mut self, jump: usize, loosest: u8, offset: usize) -> Outcome<()> {
        self.binary(loosest)?;
        self.program.push(Instruction::Truth, offset);
        self.program.land(jump);
        Ok(())
    }

    /// A unit with its signs, which bind tighter than what follows: `!a.b` is `(!a).b`.
    fn operand(&mut self) -> Outcome<()> {
        let mut signs = Vec::new();
        while let Some(token) = self.current
            && let Some(sign) = sign(token.text)
        {
            signs.push((sign, self.base + token.start));
            self.advance()?;
        }
        self.unit()?;
        for (sign, offset) in signs.into_iter().rev() {
            self.program.push(Instruction::Unary(sign), offset);
        }
        self.accesses()
    }

    fn unit(&mut self) -> Outcome<()> {
        let token = self.some()?;
        let instruction = match (token.kind, token.text) {
            (Kind::Number, _) => Instruction::Number(self.number(token)?),
            (Kind::String, text) => Instruction::Text(unquoted(text).into()),
            (Kind::Identifier, name) => Instruction::Load(name.into()),
            (Kind::Symbol, "true") => Instruction::Bool(true),
            (Kind::Symbol, "false") => Instruction::Bool(false),
            (Kind::Symbol, "null") => Instruction::Null,
            (Kind::Symbol, "(") => {
                self.advance()?;
                self.expression()?;
                return self.take(")", ")");
            }
            (Kind::Symbol, "[") => return self.array(token),
            (Kind::Symbol, "{") => return self.object(token),
            (Kind::Symbol, _) => return Err(self.unexpected(token, OPERAND)),
        };
        self.program.push(instruction, self.base + token.start);
        self.advance()
    }

    /// Any number of `.name`, `[..]` and `(..)`.
    fn accesses(&mut self) -> Outcome<()> {
        while let Some(token) = self.current {
            let offset = self.base + token.start;
            match token.text {
                "." => {
                    self.advance()?;
                    let name = self.some()?;
                    if name.kind != Kind::Identifier {
                        return Err(self.unexpected(name, "identifier"));
                    }
                    self.advance()?;
                    self.program.push(Instruction::Property(name.text.into()), offset);
                }
                "[" => {
                    self.advance()?;
                    self.brackets(offset)?;
                }
                "(" => {
                    self.advance()?;
                    self.program.push(Instruction::Callable, offset);
                    let count = self.sequence(")")?;
                    self.program.push(Instruction::Call(count), offset);
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Behind a `[` that follows a value.
    fn brackets(&mut self, offset: usize) -> Outcome<()> {
        let from = self.some()?.text != ":";
        if from {
            self.expression()?;
        }
        if self.some()?.text != ":" {
            self.take("]", ":, ]")?;
            self.program.push(Instruction::Index, offset);
            return Ok(());
        }
        self.advance()?;
        let to = self.some()?.text != "]";
        if to {
            self.expression()?;
        }
        self.take("]", "]")?;
        self.program.push(Instruction::Slice { from, to }, offset);
        Ok(())
    }

    fn array(&mut self, open: Token<'s>) -> Outcome<()> {
        self.advance()?;
        let count = self.sequence("]")?;
        self.program.push(Instruction::Array(count), self.base + open.start);
        Ok(())
    }

    /// Expressions with commas between them, and the token that ends them.
    fn sequence(&mut self, close: &str) -> Outcome<usize> {
        let mut count = 0;
        if self.some()?.text != close {
            self.expression()?;
            count = 1;
            while self.some()?.text == "," {
                self.advance()?;
                self.expression()?;
                count += 1;
            }
        }
        self.take(close, &format!(",, {close}"))?;
        Ok(count)
    }

    /// Keys are names or strings; as in the other implementations, a comma may end the list.
    fn object(&mut self, open: Token<'s>) -> Outcome<()> {
        self.advance()?;
        let mut keys: Vec<Box<str>> = Vec::new();
        loop {
            let token = self.some()?;
            let key = if token.kind == Kind::String { unquoted(token.text) } else { token.text };
            if token.kind != Kind::String && token.kind != Kind::Identifier {
                break;
            }
            self.advance()?;
            self.take(":", ":")?;
            self.expression()?;
            keys.push(key.into());
            if self.some()?.text == "}" {
                break;
            }
            self.take(",", ",")?;
        }
        self.take("}", "}")?;
        self.program.push(Instruction::Object(keys.into()), self.base + open.start);
        Ok(())
    }

    fn number(&self, token: Token<'_>) -> Outcome<Number> {
        Number::parse(token.text).ok_or_else(|| {
            Error::syntax(format!("number {} is too large", excerpt(token.text))).at(self.base + token.start)
        })
    }

    fn some(&self) -> Outcome<Token<'s>> {
        self.current.ok_or_else(|| Error::syntax("Unexpected end of input").at(self.base + self.tokens.end()))
    }

    /// Goes behind a symbol; what else could have stood in its place is told where it is missing.
    fn take(&mut self, symbol: &str, expected: &str) -> Outcome<()> {
        let token = self.some()?;
        if token.text == symbol { self.advance() } else { Err(self.unexpected(token, expected)) }
    }

    fn advance(&mut self) -> Outcome<()> {
        self.current = self.tokens.next()?;
        Ok(())
    }

    fn here(&self) -> usize {
        self.base + self.current.map_or(self.tokens.end(), |token| token.start)
    }

    fn unexpected(&self, token: Token<'_>, expected: &str) -> Error {
        let found = excerpt(token.text);
        Error::syntax(format!("Found: {found} token, expected one of: {expected}"))
            .at(self.base + token.start)
    }
}

fn unquoted(text: &str) -> &str {
    &text[1..text.len() - 1]
}
