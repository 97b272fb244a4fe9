//! Which tokens are operators, and how tightly each binds: the larger the number, the tighter.

use super::program::{Binary, Unary};
use super::token::Kind;

/// What stands between two operands.
pub(super) enum Infix {
    Or,
    And,
    Binary(Binary),
}

/// How tightly an operator binds, and what it does.
pub(super) fn infix(kind: Kind) -> Option<(u8, Infix)> {
    Some(match kind {
        Kind::Or => (0, Infix::Or),
        Kind::And => (1, Infix::And),
        Kind::In => (2, Infix::Binary(Binary::In)),
        Kind::Equal => (3, Infix::Binary(Binary::Equal)),
        Kind::NotEqual => (3, Infix::Binary(Binary::NotEqual)),
        Kind::Less => (4, Infix::Binary(Binary::Less)),
        Kind::LessEqual => (4, Infix::Binary(Binary::LessEqual)),
        Kind::Greater => (4, Infix::Binary(Binary::Greater)),
        Kind::GreaterEqual => (4, Infix::Binary(Binary::GreaterEqual)),
        Kind::Plus => (5, Infix::Binary(Binary::Add)),
        Kind::Minus => (5, Infix::Binary(Binary::Subtract)),
        Kind::Times => (6, Infix::Binary(Binary::Multiply)),
        Kind::Divide => (6, Infix::Binary(Binary::Divide)),
        Kind::Power => (7, Infix::Binary(Binary::Power)),
        Kind::Number
        | Kind::Identifier
        | Kind::String
        | Kind::True
        | Kind::False
        | Kind::Null
        | Kind::OpenBracket
        | Kind::CloseBracket
        | Kind::Dot
        | Kind::OpenParen
        | Kind::CloseParen
        | Kind::OpenBrace
        | Kind::CloseBrace
        | Kind::Colon
        | Kind::Comma
        | Kind::Not => return None,
    })
}

/// What may stand before an operand; it binds tighter than anything behind it.
pub(super) fn sign(kind: Kind) -> Option<Unary> {
    if kind == Kind::Minus {
        Some(Unary::Minus)
    } else if kind == Kind::Plus {
        Some(Unary::Plus)
    } else if kind == Kind::Not {
        Some(Unary::Not)
    } else {
        None
    }
}
