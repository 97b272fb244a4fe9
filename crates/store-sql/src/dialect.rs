//! Where the databases differ, with the reason.

use std::sync::OnceLock;

/// One statement: the same text for every database, with `$1`, `$2`, ... as placeholders.
pub struct Sql {
    text: &'static str,
    postgres: Option<&'static str>,
    for_sqlite: OnceLock<String>,
}

impl Sql {
    /// A statement.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, postgres: None, for_sqlite: OnceLock::new() }
    }

    /// A statement that PostgreSQL needs in other words.
    pub(crate) const fn differing(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { text: sqlite, postgres: Some(postgres), for_sqlite: OnceLock::new() }
    }

    /// The text for SQLite, rewritten once: there `$1` is a name, and only `?1` is a number.
    pub(crate) fn sqlite(&self) -> &str {
        self.for_sqlite.get_or_init(|| self.text.replace('$', "?"))
    }

    /// The text for PostgreSQL.
    pub(crate) fn postgres(&self) -> &'static str {
        self.postgres.unwrap_or(self.text)
    }
}

/// Whether a job is not over.
macro_rules! open {
    () => {
        "state IN ('queued', 'dispatching', 'delivered', 'running', 'awaiting_input', 'awaiting_external', 'blocked')"
    };
}
pub(crate) use open;

/// How SQLite carries a statement out, step by step, on a store without rows.
#[cfg(test)]
pub(crate) fn query_plan(statement: &Sql) -> Vec<String> {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    crate::migrate_to(&mut connection, crate::SCHEMA_VERSION).unwrap();
    let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sqlite())).unwrap();
    let parameters = rusqlite::params_from_iter(vec![0_i64; explained.parameter_count()]);
    let steps = explained.query_map(parameters, |row| row.get(3)).unwrap();
    steps.collect::<Result<_, _>>().unwrap()
}

#[cfg(test)]
mod tests {
    use super::Sql;

    #[test]
    fn placeholders_become_numbers_for_sqlite_and_stay_for_postgresql() {
        static STATEMENT: Sql = Sql::new("SELECT a FROM b WHERE c = $1 AND d = $12");
        assert_eq!(STATEMENT.sqlite(), "SELECT a FROM b WHERE c = ?1 AND d = ?12");
        assert_eq!(STATEMENT.postgres(), "SELECT a FROM b WHERE c = $1 AND d = $12");
    }
}
