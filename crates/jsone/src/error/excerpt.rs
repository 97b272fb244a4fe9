//! Text of a template or a context on its way into an error, cut so that no input can flood a log.

/// Longest piece of foreign text in a message or a place, in characters.
const EXCERPT_CHARS: usize = 200;

/// Longest beginning and longest end of a path, in characters.
const PATH_END_CHARS: usize = 1000;

/// The text, or its beginning and an ellipsis.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The path, or its beginning, an ellipsis and its end.
pub(crate) fn both_ends(path: String) -> String {
    let beginning = path.char_indices().nth(PATH_END_CHARS).map(|(at, _)| at);
    let end = path.char_indices().nth_back(PATH_END_CHARS - 1).map(|(at, _)| at);
    match (beginning, end) {
        (Some(beginning), Some(end)) if beginning < end => format!("{}…{}", &path[..beginning], &path[end..]),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(excerpt(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(excerpt(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
    }

    #[test]
    fn a_path_keeps_both_ends() {
        let ends = |middle: &str| format!("{}{middle}{}", "é".repeat(1000), "ü".repeat(1000));
        assert_eq!(both_ends(ends("")), ends(""));
        assert_eq!(both_ends(ends("x")), ends("…"));
        assert_eq!(both_ends(ends("many more")), ends("…"));
        assert_eq!(both_ends(String::new()), "");
    }
}
