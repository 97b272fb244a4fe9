//! Which tokens are operators, and how tightly each binds: the larger the number, the tighter.

use super::program::{Binary, Unary};

/// All operators that stand between two operands, from the loosest to the tightest.
pub const INFIX: [&str; 14] = ["||", "&&", "in", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "**"];

/// What stands between two operands.
pub(super) enum Infix {
    Or,
    And,
    Binary(Binary),
}

/// How tightly an operator binds, and what it does.
pub(super) fn infix(symbol: &str) -> Option<(u8, Infix)> {
    Some(match symbol {
        "||" => (0, Infix::Or),
        "&&" => (1, Infix::And),
        "in" => (2, Infix::Binary(Binary::In)),
        "==" => (3, Infix::Binary(Binary::Equal)),
        "!=" => (3, Infix::Binary(Binary::NotEqual)),
        "<" => (4, Infix::Binary(Binary::Less)),
        "<=" => (4, Infix::Binary(Binary::LessEqual)),
        ">" => (4, Infix::Binary(Binary::Greater)),
        ">=" => (4, Infix::Binary(Binary::GreaterEqual)),
        "+" => (5, Infix::Binary(Binary::Add)),
        "-" => (5, Infix::Binary(Binary::Subtract)),
        "*" => (6, Infix::Binary(Binary::Multiply)),
        "/" => (6, Infix::Binary(Binary::Divide)),
        "**" => (7, Infix::Binary(Binary::Power)),
        _ => return None,
    })
}

/// What may stand before an operand; it binds tighter than anything behind it.
pub(super) fn sign(symbol: &str) -> Option<Unary> {
    match symbol {
        "-" => Some(Unary::Minus),
        "+" => Some(Unary::Plus),
        "!" => Some(Unary::Not),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::SYMBOLS;
    use super::*;

    #[test]
    fn the_list_of_infix_operators_holds_all_of_them_in_their_order() {
        let words = ["in", "true", "false", "null", "name", "1", "'text'"];
        let mut infixes: Vec<&str> =
            SYMBOLS.into_iter().chain(words).filter(|text| infix(text).is_some()).collect();
        infixes.sort_by_key(|text| INFIX.iter().position(|listed| listed == text));
        assert_eq!(infixes, INFIX);
        assert!(INFIX.is_sorted_by_key(|text| infix(text).map(|(binding, _)| binding)));
    }
}
