//! The keys that name variables: `each(x)`, `each(x,i)`, `each(acc,x,i)` and `by(x)`.

use crate::identifier::is_identifier;
use crate::node::Variables;

/// The names in `each(..)`: one after the other, separated by commas that whitespace may follow.
pub(super) fn each(key: &str) -> Option<Vec<&str>> {
    names(key, "each(")
}

/// The name in `by(..)`.
pub(super) fn by(key: &str) -> Option<&str> {
    match names(key, "by(")?.as_slice() {
        [name] => Some(name),
        _ => None,
    }
}

/// The first name is the element's, the second its index or key.
pub(super) fn variables(names: &[&str]) -> Variables {
    let name = |place: usize| names.get(place).map(|name| Box::from(*name));
    Variables { value: name(0).unwrap_or_default(), index: name(1) }
}

fn names<'k>(key: &'k str, prefix: &str) -> Option<Vec<&'k str>> {
    let inner = key.strip_prefix(prefix)?.strip_suffix(')')?;
    let names: Vec<&str> = inner
        .split(',')
        .enumerate()
        .map(|(place, name)| if place == 0 { name } else { name.trim_start() })
        .collect();
    names.iter().all(|name| is_identifier(name)).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_may_only_follow_a_comma() {
        assert_eq!(each("each(acc, x,i)"), Some(vec!["acc", "x", "i"]));
        for key in ["each()", "each( x)", "each(x )", "each(x,)", "each(x", "each(1)", "Each(x)", "each(x)y"]
        {
            assert_eq!(each(key), None, "{key}");
        }
    }

    #[test]
    fn by_takes_one_name() {
        assert_eq!(by("by(x)"), Some("x"));
        assert_eq!(by("by(x,y)"), None);
    }
}
