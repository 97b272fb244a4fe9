//! Random templates with every operator.

use serde_json::{Map, Value as Json, json};

use super::{Flavour, Source};

impl Source<'_> {
    pub(super) fn template(&mut self, depth: usize) -> Json {
        if depth == 0 {
            return self.leaf();
        }
        match self.below(20) {
            0..=2 => self.leaf(),
            3 | 4 => {
                let count = self.below(4);
                Json::Array((0..count).map(|_| self.template(depth - 1)).collect())
            }
            5 | 6 => self.plain_object(depth - 1),
            7 => json!({"$let": self.bindings(depth - 1), "in": self.template(depth - 1)}),
            8 => self.branch(depth - 1),
            9 => self.switch(depth - 1),
            10 => self.matches(depth - 1),
            11 => {
                let each = self.one_of(&["each(x)", "each(x,i)", "each(v, i)"]);
                json!({"$map": self.collection(depth - 1), each: self.template(depth - 1)})
            }
            12 => {
                let each = self.one_of(&["each(acc,x)", "each(acc, x, i)"]);
                json!({"$reduce": self.collection(depth - 1), "initial": self.value(1), each: self.template(depth - 1)})
            }
            13 => self.find(depth - 1),
            14 => self.sort(depth - 1),
            15 => json!({"$flatten": self.collection(depth - 1)}),
            16 => json!({"$flattenDeep": self.collection(depth - 1)}),
            17 => json!({"$json": self.template(depth - 1)}),
            18 => {
                let operator = self.one_of(&["$merge", "$mergeDeep", "$reverse"]);
                json!({operator: [self.plain_object(depth - 1), self.plain_object(0)]})
            }
            _ => self.odd(depth - 1),
        }
    }

    fn leaf(&mut self) -> Json {
        match self.below(4) {
            0 => self.value(0),
            1 => Json::String(self.interpolated()),
            _ => json!({"$eval": self.expression(3)}),
        }
    }

    fn interpolated(&mut self) -> String {
        match self.below(6) {
            0 => format!("${{{}}}", self.expression(2)),
            1 => format!("{}-${{{}}}!", self.text(), self.expression(2)),
            2 => format!("${{{}}}${{{}}}", self.expression(1), self.expression(1)),
            3 if !self.in_find => format!("$${{{}}}", self.one_of(&["a", "b"])),
            4 if self.is_wild() => format!("${{{}", self.expression(2)),
            _ => self.text(),
        }
    }

    fn plain_object(&mut self, depth: usize) -> Json {
        let count = self.below(4);
        let entries = (0..count).map(|_| {
            let key = match self.below(8) {
                0..=4 => self.one_of(&["k", "x", "y", "any key"]).to_owned(),
                5 => format!("${{{}}}k", self.one_of(&["n", "s", "a", "x"])),
                6 if !self.in_find => "$$eval".to_owned(),
                _ if self.is_wild() => self.one_of(&["$nope", "$", "$a-b", "$$", "$if", ""]).to_owned(),
                _ => "z".to_owned(),
            };
            (key, self.template(depth))
        });
        Json::Object(entries.collect::<Vec<_>>().into_iter().collect::<Map<_, _>>())
    }

    fn bindings(&mut self, depth: usize) -> Json {
        let mut names = json!({self.one_of(&["x", "v", "a"]): self.template(depth)});
        if self.rarely(3) {
            names[self.one_of(&["acc", "i", "n"])] = self.template(depth);
        }
        if self.is_wild() && self.rarely(8) {
            return json!({"$eval": "obj"});
        }
        names
    }

    fn branch(&mut self, depth: usize) -> Json {
        let mut branch = json!({"$if": self.expression(2)});
        if !self.rarely(4) {
            branch["then"] = self.template(depth);
        }
        if self.rarely(2) {
            branch["else"] = self.template(depth);
        }
        branch
    }

    fn switch(&mut self, depth: usize) -> Json {
        let mut cases = json!({self.expression(1): self.template(depth)});
        if self.rarely(2) {
            cases[self.expression(1)] = self.template(depth);
        }
        if self.rarely(2) {
            cases["$default"] = self.template(depth);
        }
        json!({ "$switch": cases })
    }

    fn matches(&mut self, depth: usize) -> Json {
        // The published crate keeps what vanishes as null.
        let depth = if self.flavour == Flavour::AgainstCrate { 0 } else { depth };
        json!({"$match": {self.expression(1): self.template(depth), self.expression(1): self.template(depth)}})
    }

    fn find(&mut self, depth: usize) -> Json {
        let outside = std::mem::replace(&mut self.in_find, true);
        let over = self.collection(depth);
        self.in_find = outside;
        let each = self.one_of(&["each(x)", "each(x,i)"]);
        json!({"$find": over, each: self.expression(2)})
    }

    fn sort(&mut self, depth: usize) -> Json {
        let mut sort = json!({"$sort": self.collection(depth)});
        if self.rarely(2) {
            sort["by(x)"] = Json::String(self.expression(2));
        }
        sort
    }

    /// Often something that can be gone through.
    fn collection(&mut self, depth: usize) -> Json {
        match self.below(6) {
            0 => json!({"$eval": "list"}),
            1 => json!({"$eval": "obj"}),
            2 => json!({"$eval": "range(0, 4)"}),
            3 => json!([[1, [2]], 3, {"k": 4}]),
            4 => json!(["b", "a", "abc"]),
            _ => self.template(depth),
        }
    }

    /// What has its own rules, and what is wrong.
    fn odd(&mut self, depth: usize) -> Json {
        let offset = self.one_of(&["1 day", "-1y2mo3w4d5h6m7s", "", "5 apples"]);
        match self.below(if self.is_wild() { 8 } else { 2 }) {
            0 => json!({ "$fromNow": offset }),
            1 => json!({"$fromNow": offset, "from": "2016-02-28T23:59:59.999Z"}),
            2 => json!({"$eval": self.template(depth)}),
            3 => json!({"$eval": self.expression(1), "extra": self.template(depth)}),
            4 => json!({"$map": self.collection(depth)}),
            5 => json!({"$reduce": self.collection(depth), "each(x)": 1}),
            6 => json!({"$let": self.template(depth)}),
            _ => json!({"$if": self.template(depth), "$json": 1}),
        }
    }
}
