//! Random contexts and plain values.

use serde_json::{Map, Value as Json, json};

use super::Source;

pub(super) const NAMES: [&str; 8] = ["a", "b", "n", "s", "list", "obj", "flag", "nothing"];

impl Source<'_> {
    pub(super) fn context(&mut self) -> Json {
        let mut context = Map::new();
        for name in NAMES {
            let value = match name {
                "n" => self.number(),
                "s" => Json::String(self.text()),
                "list" => self.array(2),
                "obj" => self.object(2),
                "flag" => Json::Bool(self.rarely(2)),
                "nothing" => Json::Null,
                _ => self.value(2),
            };
            if !self.rarely(8) {
                context.insert(name.to_owned(), value);
            }
        }
        if self.is_wild() && self.rarely(16) {
            context.insert(self.one_of(&["len", "now", "min", "a b", ""]).to_owned(), json!(1));
        }
        Json::Object(context)
    }

    pub(super) fn value(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => self.number(),
            1 => Json::String(self.text()),
            2 => Json::Bool(false),
            3 => Json::Bool(true),
            4 => Json::Null,
            5 | 6 => self.array(depth - 1),
            _ => self.object(depth - 1),
        }
    }

    fn array(&mut self, depth: usize) -> Json {
        let count = self.below(5);
        // Mostly of one kind, so that they can be sorted and joined.
        let kind = self.below(3);
        Json::Array(
            (0..count)
                .map(|_| match kind {
                    0 => self.number(),
                    1 => Json::String(self.text()),
                    _ => self.value(depth),
                })
                .collect(),
        )
    }

    fn object(&mut self, depth: usize) -> Json {
        let count = self.below(4);
        Json::Object(
            (0..count)
                .map(|_| (self.one_of(&["k", "x", "y", "z", "any key"]).to_owned(), self.value(depth)))
                .collect(),
        )
    }

    fn number(&mut self) -> Json {
        let small = self.below(24);
        if self.is_wild() && self.rarely(6) {
            return match self.below(10) {
                0 => json!(i64::MIN),
                1 => json!(i64::MAX),
                2 => json!(u64::MAX),
                3 => json!(1e308),
                4 => json!(-1e-308),
                5 => json!(9_007_199_254_740_993_u64),
                6 => json!(-0.0),
                7 => json!(1.0),
                8 => json!(5e-324),
                _ => json!(u64::from(u32::MAX)),
            };
        }
        match self.below(8) {
            0 => json!(-(i64::try_from(small).unwrap_or_default())),
            1 => json!(f64::from(u8::try_from(small).unwrap_or_default()) / 4.0),
            _ => json!(small),
        }
    }

    pub(super) fn text(&mut self) -> String {
        let plain =
            ["", "a", "b", "abc", "x y", "a,b", " pad ", "10", "2.5", "k", "Größe", "日本語", "🦀x", "1 day"];
        let wild = ["${a}", "$${a}", "$eval", "'", "\"", "\u{0}\n", "\u{feff}", "e\u{301}", "}", "-9 y"];
        if self.is_wild() && self.rarely(5) {
            return self.one_of(&wild).to_owned();
        }
        self.one_of(&plain).to_owned()
    }
}
