//! Paths into a value: `$`, names after dots, `['any key']` and `[0]`; the leading `$` or dot may be left out.

use serde_json::Value as Json;

use crate::excerpt::excerpt;
use crate::functions::Refused;
use crate::meter::Meter;

/// Whether the path leads to something; refused when it is no path.
pub(super) fn leads_somewhere(value: &Json, path: &str, meter: &mut Meter) -> Result<bool, Refused> {
    meter.text(path.len())?;
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut reached = Some(value);
    // A bare name may begin a path.
    let mut named = rest.len() == path.len() && !rest.is_empty() && !rest.starts_with(['.', '[']);
    while named || !rest.is_empty() {
        let (step, after) = if named { name(rest)? } else { step(rest)? };
        named = false;
        rest = after;
        meter.step()?;
        reached = match (step, reached) {
            (Step::Key(key), Some(Json::Object(object))) => {
                meter.search(object.len(), key.len())?;
                object.get(key)
            }
            (Step::Index(index), Some(Json::Array(array))) => array.get(index),
            (Step::Key(_) | Step::Index(_), _) => None,
        };
    }
    Ok(reached.is_some())
}

enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

fn step(rest: &str) -> Result<(Step<'_>, &str), String> {
    if let Some(rest) = rest.strip_prefix('.') {
        return name(rest);
    }
    let Some(inner) = rest.strip_prefix('[') else { return Err(refused(rest)) };
    for quote in ['\'', '"'] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (key, after) = quoted.split_once(quote).ok_or_else(|| refused(rest))?;
            let after = after.strip_prefix(']').ok_or_else(|| refused(rest))?;
            return Ok((Step::Key(key), after));
        }
    }
    let (digits, after) = inner.split_once(']').ok_or_else(|| refused(rest))?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused(rest));
    }
    Ok((Step::Index(digits.parse().map_err(|_| refused(rest))?), after))
}

fn name(rest: &str) -> Result<(Step<'_>, &str), String> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    if end == 0 {
        return Err(refused(rest));
    }
    Ok((Step::Key(&rest[..end]), &rest[end..]))
}

fn refused(rest: &str) -> String {
    format!("path does not parse at '{}'", excerpt(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::limits::Limits;

    fn led(value: &Json, path: &str) -> Option<bool> {
        leads_somewhere(value, path, &mut Meter::new(&Limits::default())).ok()
    }

    #[test]
    fn a_path_leads_through_keys_and_indices() {
        let value = json!({"a": {"b": [10, {"any key": null}]}, "": 1});
        for path in ["", "$", "a", "$.a", ".a", "a.b[1]", "$.a['b'][0]", "a.b[1]['any key']", "$[\"\"]"] {
            assert_eq!(led(&value, path), Some(true), "{path:?}");
        }
        for path in ["b", "a.c", "a.b[2]", "a[0]", "a.b.c", "a.b[1].any"] {
            assert_eq!(led(&value, path), Some(false), "{path:?}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_wherever_it_ends() {
        for path in [
            ".",
            "a.",
            "a..b",
            "a[",
            "a[x]",
            "a[-1]",
            "a['b]",
            "a['b'",
            "a[0]b",
            "$a",
            "nowhere[99999999999999999999]",
        ] {
            assert!(led(&json!({}), path).is_none(), "{path:?}");
        }
    }
}
