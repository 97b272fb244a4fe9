//! Where the databases differ, with the reason.

use std::sync::OnceLock;

/// One statement: the same text for every database, with `$1`, `$2`, ... as placeholders.
pub(crate) struct Sql {
    text: &'static str,
    for_sqlite: OnceLock<String>,
}

impl Sql {
    /// A statement.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, for_sqlite: OnceLock::new() }
    }

    /// The text for SQLite, rewritten once: there `$1` is a name, and only `?1` is a number.
    pub(crate) fn sqlite(&self) -> &str {
        self.for_sqlite.get_or_init(|| self.text.replace('$', "?"))
    }
}

#[cfg(test)]
mod tests {
    use super::Sql;

    #[test]
    fn placeholders_become_numbers_for_sqlite() {
        static STATEMENT: Sql = Sql::new("SELECT a FROM b WHERE c = $1 AND d = $12");
        assert_eq!(STATEMENT.sqlite(), "SELECT a FROM b WHERE c = ?1 AND d = ?12");
    }
}
