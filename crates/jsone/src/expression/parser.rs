//! Precedence climbing over tokens, writing instructions as it goes: every token is looked at once, so parsing
//! is linear in the length of the expression.

use super::precedence::{Infix, infix, sign};
use super::program::{Binary, Instruction, Program, Slice};
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
        Some(token) if token.kind == Kind::CloseBrace => Ok((parser.program, token.start)),
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
            && let Some((binding, infix)) = infix(token.kind)
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
            && let Some(sign) = sign(token.kind)
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
        let instruction = match token.kind {
            Kind::Number => Instruction::Number(self.number(token)?),
            Kind::String => Instruction::Text(unquoted(token.text).into()),
            Kind::True => Instruction::Bool(true),
            Kind::False => Instruction::Bool(false),
            Kind::Null => Instruction::Null,
            Kind::Identifier => Instruction::Load(token.text.into()),
            Kind::OpenParen => {
                self.advance()?;
                self.expression()?;
                return self.take(Kind::CloseParen, ")").map(drop);
            }
            Kind::OpenBracket => return self.array(token),
            Kind::OpenBrace => return self.object(token),
            Kind::In
            | Kind::Power
            | Kind::Plus
            | Kind::Minus
            | Kind::Times
            | Kind::Divide
            | Kind::CloseBracket
            | Kind::Dot
            | Kind::CloseParen
            | Kind::CloseBrace
            | Kind::Colon
            | Kind::Comma
            | Kind::GreaterEqual
            | Kind::LessEqual
            | Kind::Less
            | Kind::Greater
            | Kind::Equal
            | Kind::NotEqual
            | Kind::Not
            | Kind::And
            | Kind::Or => return Err(self.unexpected(token, OPERAND)),
        };
        self.program.push(instruction, self.base + token.start);
        self.advance()
    }

    /// Any number of `.name`, `[..]` and `(..)`.
    fn accesses(&mut self) -> Outcome<()> {
        while let Some(token) = self.current {
            let offset = self.base + token.start;
            if token.kind == Kind::Dot {
                self.advance()?;
                let name = self.take(Kind::Identifier, "identifier")?;
                self.program.push(Instruction::Property(name.text.into()), offset);
            } else if token.kind == Kind::OpenBracket {
                self.advance()?;
                self.brackets(offset)?;
            } else if token.kind == Kind::OpenParen {
                self.advance()?;
                self.program.push(Instruction::Callable, offset);
                let count = self.sequence(Kind::CloseParen, ")")?;
                self.program.push(Instruction::Call(count), offset);
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Behind a `[` that follows a value.
    fn brackets(&mut self, offset: usize) -> Outcome<()> {
        let from = self.some()?.kind != Kind::Colon;
        if from {
            self.expression()?;
        }
        if self.some()?.kind != Kind::Colon {
            self.take(Kind::CloseBracket, ":, ]")?;
            self.program.push(Instruction::Index, offset);
            return Ok(());
        }
        self.advance()?;
        let to = self.some()?.kind != Kind::CloseBracket;
        if to {
            self.expression()?;
        }
        self.take(Kind::CloseBracket, "]")?;
        let slice = match (from, to) {
            (false, false) => Slice::Whole,
            (true, false) => Slice::From,
            (false, true) => Slice::To,
            (true, true) => Slice::FromTo,
        };
        self.program.push(Instruction::Slice(slice), offset);
        Ok(())
    }

    fn array(&mut self, open: Token<'s>) -> Outcome<()> {
        self.advance()?;
        let count = self.sequence(Kind::CloseBracket, "]")?;
        self.program.push(Instruction::Array(count), self.base + open.start);
        Ok(())
    }

    /// Expressions with commas between them, and the token that ends them.
    fn sequence(&mut self, close: Kind, closing: &str) -> Outcome<usize> {
        let mut count = 0;
        if self.some()?.kind != close {
            self.expression()?;
            count = 1;
            while self.some()?.kind == Kind::Comma {
                self.advance()?;
                self.expression()?;
                count += 1;
            }
        }
        self.take(close, &format!(",, {closing}"))?;
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
            self.take(Kind::Colon, ":")?;
            self.expression()?;
            keys.push(key.into());
            if self.some()?.kind == Kind::CloseBrace {
                break;
            }
            self.take(Kind::Comma, ",")?;
        }
        self.take(Kind::CloseBrace, "}")?;
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

    fn take(&mut self, kind: Kind, expected: &str) -> Outcome<Token<'s>> {
        let token = self.some()?;
        if token.kind != kind {
            return Err(self.unexpected(token, expected));
        }
        self.advance()?;
        Ok(token)
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
