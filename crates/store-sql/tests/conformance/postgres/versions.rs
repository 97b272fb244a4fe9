//! Versions of the schema: up, down and up again, by many nodes at once, and what is newer is left alone.

use store::{PeerQuery, Store as _, VIEW_FORMAT};
use store_sql::{
    PostgresAddress, PostgresLedger, PostgresOptions, PostgresStore, SCHEMA_VERSION, migrate_postgres_to,
};

use super::database::Database;
use super::proxy::Proxy;
use crate::given::{live_in, sight};
use crate::peers::peer;

/// Tables with their columns, indexes, functions, triggers, sequences: whatever a migration makes.
async fn schema(database: &Database) -> Vec<String> {
    let raw = database.raw().await;
    let statement = "SELECT table_name || '.' || column_name || ' ' || data_type || coalesce(collation_name, '') || is_nullable \
                     FROM information_schema.columns WHERE table_schema = current_schema() \
                     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() \
                     UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = current_schema() \
                     UNION ALL SELECT trigger_name || event_manipulation FROM information_schema.triggers \
                               WHERE trigger_schema = current_schema() \
                     UNION ALL SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema = current_schema() \
                     ORDER BY 1";
    raw.query(statement, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

// conforms: L72
#[tokio::test]
async fn migrations_lead_up_down_and_up_again_to_the_same_schema() {
    let database = Database::lived_in().await;
    let up = schema(&database).await;
    assert!(up.len() > 50, "{up:?}");
    migrate_postgres_to(&database.address(), 0).await.unwrap();
    assert!(schema(&database).await.is_empty());
    migrate_postgres_to(&database.address(), SCHEMA_VERSION).await.unwrap();
    assert_eq!(schema(&database).await, up);
    live_in(&database.open().await).await;
    assert!(database.verified().await.differences.is_empty());
}

// conforms: L3
#[tokio::test]
async fn store_of_any_older_schema_is_brought_up_to_date_with_everything_in_it() {
    let database = Database::lived_in().await;
    let before = sight(&database.open().await).await;
    for older in 1..SCHEMA_VERSION {
        migrate_postgres_to(&database.address(), older).await.unwrap();
        let refused = PostgresLedger::open(&database.address()).await.err().unwrap();
        assert_eq!(refused.code(), "older_schema");
        assert_eq!(sight(&database.open().await).await, before);
        assert!(database.verified().await.differences.is_empty());
    }
}

#[tokio::test]
async fn peers_migrate_both_ways_unless_two_circles_share_an_id() {
    const BEFORE_CIRCLES: i64 = 14;
    let database = Database::missing().await;
    let all = || PeerQuery { limit: 9, ..PeerQuery::default() };
    let [ada, press, bindery] = [("ada", None), ("joan", Some("press")), ("joan", Some("bindery"))]
        .map(|(id, circle)| peer(id, id, circle));
    let store = database.open().await;
    for one in [&ada, &press] {
        store.keep_peer(one.clone()).await.unwrap();
    }
    drop(store);
    migrate_postgres_to(&database.address(), BEFORE_CIRCLES).await.unwrap();
    let store = database.open().await;
    assert_eq!(store.peers(all()).await.unwrap().peers, [ada.clone(), press.clone()]);
    store.keep_peer(bindery.clone()).await.unwrap();
    drop(store);
    assert!(migrate_postgres_to(&database.address(), BEFORE_CIRCLES).await.is_err());
    let store = database.open().await;
    assert_eq!(store.peers(all()).await.unwrap().peers, [ada, bindery.clone(), press]);
    assert_eq!(store.forget_peer(&bindery.key(), 1).await, Ok(true));
    drop(store);
    migrate_postgres_to(&database.address(), BEFORE_CIRCLES).await.unwrap();
    assert_eq!(database.rows("peers").await.len(), 2);
}

#[tokio::test]
async fn nodes_may_start_together_on_an_empty_database() {
    const NODES: usize = 6;
    let database = Database::missing().await;
    let opened = futures::future::join_all((0..NODES).map(|_| database.try_open())).await;
    for node in opened {
        node.unwrap();
    }
    assert!(database.verified().await.differences.is_empty());
}

#[tokio::test]
async fn newer_schema_and_newer_views_are_refused_and_left_alone() {
    for (mark, newer, code) in
        [("schema", SCHEMA_VERSION + 1, "newer_schema"), ("view_format", VIEW_FORMAT + 1, "newer_views")]
    {
        let database = Database::lived_in().await;
        let raw = database.raw().await;
        raw.execute("UPDATE meta SET value = $2 WHERE name = $1", &[&mark, &newer]).await.unwrap();
        let (meta, jobs) = (database.rows("meta").await, database.rows("jobs").await);
        assert_eq!(database.try_open().await.err().unwrap().code(), code);
        assert_eq!(PostgresLedger::open(&database.address()).await.err().unwrap().code(), code);
        assert_eq!((database.rows("meta").await, database.rows("jobs").await), (meta, jobs));
    }
}

#[tokio::test]
async fn views_of_an_older_format_are_rebuilt_at_start() {
    let database = Database::lived_in().await;
    let before = database.rows("jobs").await;
    let raw = database.raw().await;
    raw.batch_execute("UPDATE meta SET value = 0 WHERE name = 'view_format'; UPDATE jobs SET view = '{}'")
        .await
        .unwrap();
    drop(database.open().await);
    assert_eq!(database.rows("jobs").await, before);
    assert!(database.verified().await.differences.is_empty());
}

/// Messages between two cuts at a commit; wherever `LONGHAUL_LOSSES` is set it is cut off at each.
const EVERY: usize = 5;

/// Cut off before and after messages of an upgrade from the oldest schema, in which the views are written anew as well.
#[tokio::test]
async fn upgrade_that_loses_its_connection_anywhere_is_finished_by_the_next_start() {
    let database = Database::lived_in().await;
    let (before, whole) = (sight(&database.open().await).await, schema(&database).await);
    let proxy = Proxy::before(&database.schema.address).await;
    let through = PostgresOptions::at(PostgresAddress::parse(&proxy.address).unwrap());
    let raw = database.raw().await;
    let number = async |name: &str| -> i64 {
        raw.query_one("SELECT value FROM meta WHERE name = $1", &[&name]).await.unwrap().get(0)
    };
    let mut cut_at = std::collections::BTreeSet::new();
    let every = if std::env::var_os("LONGHAUL_LOSSES").is_some() { 1 } else { EVERY };
    for messages in (0..).step_by(every) {
        migrate_postgres_to(&database.address(), 1).await.unwrap();
        raw.batch_execute(
            "UPDATE meta SET value = 0 WHERE name = 'view_format'; UPDATE jobs SET view = '{}', state = 'queued'",
        )
        .await
        .unwrap();
        proxy.cut_after(messages);
        let opened = PostgresStore::open(&through).await;
        assert!(proxy.has_cut(), "{messages} messages were not enough");
        drop(opened);
        let (reached, views) = (number("schema").await, number("view_format").await);
        cut_at.insert(reached);
        assert_eq!(sight(&database.open().await).await, before, "cut off after {messages} messages");
        assert_eq!(schema(&database).await, whole, "cut off after {messages} messages");
        assert!(database.verified().await.differences.is_empty(), "cut off after {messages} messages");
        if (reached, views) == (SCHEMA_VERSION, VIEW_FORMAT) {
            println!("cut off after every {every} of {messages} messages");
            break;
        }
    }
    // It was cut off before and after each migration, not only around the first.
    assert_eq!(cut_at.into_iter().collect::<Vec<_>>(), (1..=SCHEMA_VERSION).collect::<Vec<_>>());
}
