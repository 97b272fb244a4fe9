//! What a service says for people: one line of bounded length that steers no terminal and breaks no log.

/// The most bytes of it; the rest is cut off.
const MAX_HINT_BYTES: usize = 1_024;

/// The text, made plain.
pub fn hint_text(text: &str) -> String {
    let mut plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.truncate(plain.floor_char_boundary(MAX_HINT_BYTES));
    plain
}
