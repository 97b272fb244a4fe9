//! What JSON-e takes for a name: an ASCII letter or underscore, then letters, digits and underscores.

/// Whether `name` may stand for a context value.
pub(crate) fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|first| starts_identifier(*first))
        && bytes.iter().all(|byte| continues_identifier(*byte))
}

pub(crate) fn starts_identifier(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(crate) fn continues_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
