//! Random expressions: well-formed ones, and for the wild flavour also broken ones.

use super::values::NAMES;
use super::{Flavour, Source};

/// Names that operators bind in the templates.
pub(super) const VARIABLES: [&str; 4] = ["x", "i", "acc", "v"];

impl Source<'_> {
    pub(super) fn expression(&mut self, depth: usize) -> String {
        let expression = self.operand(depth);
        if self.is_wild() && self.rarely(6) { self.mangled(&expression) } else { expression }
    }

    fn operand(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        match self.below(14) {
            0..=3 => self.atom(),
            4 | 5 => {
                let operator = self.binary_operator();
                let left = self.operand(depth - 1);
                let right = self.right_of(operator, depth - 1);
                if self.rarely(2) {
                    format!("({left} {operator} {right})")
                } else {
                    format!("{left} {operator} {right}")
                }
            }
            6 => format!("({})", self.operand(depth - 1)),
            7 => self.unary(depth - 1),
            8 => format!("{}.{}", self.name(), self.one_of(&["k", "x", "y", "key", "val"])),
            9 => self.access(depth - 1),
            10 | 11 => self.call(depth - 1),
            12 => {
                let count = self.below(4);
                let items: Vec<String> = (0..count).map(|_| self.operand(depth - 1)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => format!(
                "{{{}: {}, '{}': {}}}",
                self.one_of(&["k", "x"]),
                self.operand(depth - 1),
                self.one_of(&["y", "any key"]),
                self.operand(depth - 1)
            ),
        }
    }

    fn atom(&mut self) -> String {
        match self.below(8) {
            0 | 1 => self.name(),
            2 | 3 => self.below(12).to_string(),
            4 => format!("'{}'", self.one_of(&["", "a", "b", "abc", "k", "10", "é日"])),
            5 => self.one_of(&["true", "false", "null"]).to_owned(),
            6 if self.is_wild() => self
                .one_of(&["18446744073709551615", "9223372036854775808", "1e5", "99999999999999999999.5"])
                .to_owned(),
            6 => format!("{}.5", self.below(12)),
            _ => self.one_of(&["'x'", "\"y\"", "[]", "{}"]).to_owned(),
        }
    }

    fn name(&mut self) -> String {
        if self.rarely(3) { self.one_of(&VARIABLES).to_owned() } else { self.one_of(&NAMES).to_owned() }
    }

    fn binary_operator(&mut self) -> &'static str {
        self.one_of(&["+", "-", "*", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in", "/", "**"])
    }

    /// Divisors and exponents that keep the other implementations finite and quick.
    fn right_of(&mut self, operator: &str, depth: usize) -> String {
        match operator {
            "/" if self.flavour == Flavour::AgainstCrate => self.one_of(&["2", "4", "5"]).to_owned(),
            "**" if !self.is_wild() => self.one_of(&["0", "1", "2"]).to_owned(),
            _ => self.operand(depth),
        }
    }

    fn unary(&mut self, depth: usize) -> String {
        let sign = self.one_of(&["!", "-", "+"]);
        let operand = self.operand(depth);
        // The published crate takes one sign only.
        if self.flavour == Flavour::AgainstCrate {
            format!("{sign}({operand})")
        } else {
            format!("{sign}{operand}")
        }
    }

    fn access(&mut self, depth: usize) -> String {
        let value = if self.rarely(2) { self.name() } else { format!("({})", self.operand(depth)) };
        // The published crate clamps negative indices of strings instead of refusing them.
        let lowest: &[&str] = if self.flavour == Flavour::AgainstCrate {
            &["0", "1", "2"]
        } else {
            &["0", "1", "2", "-1", "-2", "-9"]
        };
        match self.below(6) {
            0 => format!("{value}[{}]", self.one_of(lowest)),
            1 => format!("{value}['{}']", self.one_of(&["k", "x", "nope"])),
            2 => format!(
                "{value}[{}:{}]",
                self.one_of(&["", "0", "1", "-2"]),
                self.one_of(&["", "2", "-1", "99"])
            ),
            3 if self.flavour != Flavour::AgainstCrate => format!("{value}[{}]", self.operand(depth)),
            _ => format!("{value}[{}:]", self.one_of(&["0", "1"])),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let operand = self.operand(depth);
        let other = self.operand(depth);
        match self.below(16) {
            0 => format!("len({operand})"),
            1 => format!("str({operand})"),
            2 => format!("min({operand}, {other})"),
            3 => format!("max({operand}, {other})"),
            4 => format!("typeof({operand})"),
            5 => format!("defined('{}')", self.name()),
            6 => format!("uppercase({operand})"),
            7 => format!("strip({operand})"),
            8 => format!("join({operand}, '-')"),
            9 => format!("range({}, {})", self.below(4), self.below(8)),
            10 => format!("number('{}')", self.one_of(&["1", "2.5", "-3"])),
            11 => format!("abs({operand})"),
            12 => format!("ceil({operand}) + floor({other})"),
            // The published crate drops the empty parts.
            13 if self.flavour == Flavour::AgainstCrate => format!("lowercase({operand})"),
            13 => format!("split({operand}, '{}')", self.one_of(&["", ",", "a", " "])),
            14 => format!("fromNow('{}')", self.one_of(&["1 day", "-2 h", "3mo 1s", "5 apples"])),
            _ if self.is_wild() => format!("{}({operand}, {other})", self.name()),
            _ => format!("lstrip(rstrip({operand}))"),
        }
    }

    /// Takes a character away, doubles one, or puts a strange one in.
    fn mangled(&mut self, expression: &str) -> String {
        let mut characters: Vec<char> = expression.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(characters.len().max(1));
            match self.below(3) {
                0 if at < characters.len() => {
                    characters.remove(at);
                }
                1 if at < characters.len() => characters.insert(at, characters[at]),
                _ => {
                    let strange =
                        self.one_of(&["(", ")", "[", "]", "}", "'", ".", ",", ":", "$", "é", "*", "1", " "]);
                    characters.splice(at.min(characters.len())..at.min(characters.len()), strange.chars());
                }
            }
        }
        characters.into_iter().collect()
    }
}
