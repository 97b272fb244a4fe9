//! Opening: what is missing, not ours or not allowed is refused by name, with what to do about it, and nothing is changed.

use store_sql::{Durability, OpenError, PostgresAddress, PostgresLedger, PostgresOptions, PostgresStore};
use test_postgres::{Cluster, Schema, address_of, server};

use super::database::Database;

async fn refusal(address: &str) -> OpenError {
    let address = PostgresAddress::parse(address).unwrap();
    let Err(refused) = PostgresStore::open(&PostgresOptions::at(address)).await else {
        panic!("it was opened");
    };
    refused
}

/// The address of the tests' server, its user or its database replaced.
fn other(user: Option<&str>, database: Option<&str>) -> String {
    let mut url = url::Url::parse(&server()).unwrap();
    if let Some(user) = user {
        url.set_username(user).unwrap();
    }
    if let Some(database) = database {
        url.set_path(database);
    }
    url.to_string()
}

#[tokio::test]
async fn server_that_does_not_answer_is_named() {
    // Nothing listens on the discard port.
    let refused = refusal("postgres://ada:secret@127.0.0.1:9/work").await;
    assert_eq!(refused.code(), "database_unreachable");
    let told = refused.to_string();
    assert!(told.contains("postgres://ada@127.0.0.1:9/work") && !told.contains("secret"), "{told}");
}

#[tokio::test]
async fn database_that_is_missing_is_named_with_the_command_that_makes_it() {
    let refused = refusal(&other(None, Some("nobody_made_this"))).await;
    assert_eq!(refused.code(), "database_missing");
    assert!(refused.to_string().contains("createdb nobody_made_this"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_syncs_nothing_is_refused_unless_that_was_chosen() {
    let cluster = Cluster::start();
    let database = Database { schema: Schema::on(&cluster.address()).await };
    database.raw().await.batch_execute("ALTER SYSTEM SET fsync = off").await.unwrap();
    tokio::task::block_in_place(|| cluster.crash_and_restart());
    let refused = refusal(&database.schema.address).await;
    assert_eq!(refused.code(), "database_unsynced");
    assert!(refused.to_string().contains("durability: relaxed"), "{refused}");
    assert!(tables(&database).await.is_empty());

    let relaxed =
        PostgresOptions { durability: Durability::Relaxed, ..PostgresOptions::at(database.address()) };
    PostgresStore::open(&relaxed).await.unwrap().close().await;
}

#[tokio::test]
async fn user_that_is_unknown_or_may_make_nothing_is_told_so_and_nothing_is_made() {
    let refused = refusal(&other(Some("nobody_i_know"), None)).await;
    assert_eq!(refused.code(), "database_rights", "{refused}");

    let database = Database::missing().await;
    let raw = database.raw().await;
    let user = format!("guest_of_{}", database.schema.name());
    let schema = database.schema.name();
    raw.batch_execute(&format!("CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {user}"))
        .await
        .unwrap();
    let refused = refusal(&address_of(&other(Some(&user), None), schema)).await;
    assert_eq!(refused.code(), "database_rights", "{refused}");
    assert!(tables(&database).await.is_empty());
}

async fn tables(database: &Database) -> Vec<String> {
    let raw = database.raw().await;
    let statement =
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()";
    raw.query(statement, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn database_that_takes_no_writes_is_refused_for_work_and_may_be_read() {
    let database = Database::lived_in().await;
    let read_only = format!("{}%20-c%20default_transaction_read_only%3Don", database.schema.address);
    let refused = refusal(&read_only).await;
    assert_eq!(refused.code(), "database_read_only", "{refused}");
    let ledger = PostgresLedger::open(&PostgresAddress::parse(&read_only).unwrap()).await.unwrap();
    assert!(ledger.verify().await.unwrap().differences.is_empty());
}

#[tokio::test]
async fn schema_that_is_missing_is_named() {
    let refused = refusal(&address_of(&server(), "nobody_made_this")).await;
    assert_eq!(refused.code(), "store_refused");
    assert!(refused.to_string().contains("search_path"), "{refused}");
}

#[tokio::test]
async fn tables_of_another_program_are_left_alone() {
    for foreign in [
        "CREATE TABLE jobs (id BIGINT PRIMARY KEY)",
        "CREATE TABLE meta (id BIGINT PRIMARY KEY)",
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT); INSERT INTO meta VALUES ('schema', 1)",
    ] {
        let database = Database::missing().await;
        database.raw().await.batch_execute(foreign).await.unwrap();
        let before = tables(&database).await;
        let refused = refusal(&database.schema.address).await;
        assert_eq!(refused.code(), "foreign_database", "{foreign}: {refused}");
        assert_eq!(tables(&database).await, before);
    }
}

#[tokio::test]
async fn store_that_is_missing_is_not_made_by_reading() {
    let database = Database::missing().await;
    let refused = PostgresLedger::open(&database.address()).await.err().unwrap();
    assert_eq!(refused.code(), "store_missing", "{refused}");
    assert!(tables(&database).await.is_empty());
}
