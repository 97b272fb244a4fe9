//! Which tokens are operators, and how tightly each binds: the larger the number, the tighter.

use super::program::{Binary, Unary};
use super::token::Kind;

/// All operators that stand between two operands, from the loosest to the tightest.
pub const INFIX: [&str; 14] = ["||", "&&", "in", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "**"];

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

#[cfg(test)]
mod tests {
    use super::super::token::{SYMBOLS, Tokens};
    use super::*;

    fn kind(text: &str) -> Kind {
        Tokens::new(text, 0).next().unwrap().unwrap().kind
    }

    #[test]
    fn the_list_of_infix_operators_holds_all_of_them_in_their_order() {
        let words = ["in", "true", "false", "null", "name", "1", "'text'"];
        let every = SYMBOLS.iter().map(|(symbol, _)| *symbol).chain(words);
        let mut infixes: Vec<&str> = every.filter(|text| infix(kind(text)).is_some()).collect();
        infixes.sort_by_key(|text| INFIX.iter().position(|listed| listed == text));
        assert_eq!(infixes, INFIX);
        assert!(INFIX.is_sorted_by_key(|text| infix(kind(text)).map(|(binding, _)| binding)));
    }
}
