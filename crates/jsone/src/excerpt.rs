//! Text of a template or a context on its way into an error message, cut so that no input can flood a log.

/// Longest piece of foreign text in a message, in characters.
const EXCERPT_CHARS: usize = 200;

/// The text, or its beginning and an ellipsis.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
