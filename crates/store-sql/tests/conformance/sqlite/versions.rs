//! Versions of the file: schema and views go up, schema goes down, and what is newer is left alone.

use rusqlite::Connection;
use store::{PeerQuery, Store as _, VIEW_FORMAT};
use store_sql::{
    OpenError, SCHEMA_VERSION, SqliteOptions, SqliteStore, migrate_to, open_for_reading, open_for_rebuilding,
};

use super::file::File;
use crate::given::sight;
use crate::peers::peer;

fn schema(connection: &Connection) -> Vec<(String, String, String, Option<String>)> {
    connection
        .prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn schema_number(connection: &Connection) -> i64 {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// The codes with which each way to open the file is refused.
fn refusals(file: &File) -> [&'static str; 3] {
    let code = |opened: Result<(), OpenError>| match opened {
        Ok(()) => "opened",
        Err(error) => error.code(),
    };
    [
        code(SqliteStore::open(&SqliteOptions::at(file.path())).map(|_| ())),
        code(open_for_reading(&file.path()).map(|_| ())),
        code(open_for_rebuilding(&file.path()).map(|_| ())),
    ]
}

// conforms: L72
#[tokio::test]
async fn migrations_lead_up_down_and_up_again_to_the_same_schema() {
    let file = File::lived_in().await;
    file.remove_mark();
    let mut raw = file.raw();
    let up = schema(&raw);
    assert!(up.len() > 10);
    migrate_to(&mut raw, 0).unwrap();
    assert_eq!((schema(&raw), schema_number(&raw)), (Vec::new(), 0));
    migrate_to(&mut raw, SCHEMA_VERSION).unwrap();
    assert_eq!((schema(&raw), schema_number(&raw)), (up, SCHEMA_VERSION));
    drop(raw);
    assert!(file.verified().differences.is_empty());
    file.open();
}

// conforms: L3
#[tokio::test]
async fn file_of_any_older_schema_is_brought_up_to_date_with_everything_in_it() {
    let file = File::lived_in().await;
    let before = sight(&file.open()).await;
    for older in 1..SCHEMA_VERSION {
        migrate_to(&mut file.raw(), older).unwrap();
        assert_eq!(schema_number(&file.raw()), older);
        assert_eq!(sight(&file.open()).await, before);
        assert_eq!(schema_number(&file.raw()), SCHEMA_VERSION);
        assert!(file.verified().differences.is_empty());
    }
}

#[tokio::test]
async fn peers_migrate_both_ways_unless_two_circles_share_an_id() {
    const BEFORE_CIRCLES: i64 = 14;
    let file = File::missing();
    let all = || PeerQuery { limit: 9, ..PeerQuery::default() };
    let [ada, press, bindery] = [("ada", None), ("joan", Some("press")), ("joan", Some("bindery"))]
        .map(|(id, circle)| peer(id, id, circle));
    let store = file.open();
    for one in [&ada, &press] {
        store.keep_peer(one.clone()).await.unwrap();
    }
    drop(store);
    migrate_to(&mut file.raw(), BEFORE_CIRCLES).unwrap();
    let store = file.open();
    assert_eq!(store.peers(all()).await.unwrap().peers, [ada.clone(), press.clone()]);
    store.keep_peer(bindery.clone()).await.unwrap();
    drop(store);
    assert!(migrate_to(&mut file.raw(), BEFORE_CIRCLES).is_err());
    assert_eq!(schema_number(&file.raw()), BEFORE_CIRCLES + 1);
    let store = file.open();
    assert_eq!(store.peers(all()).await.unwrap().peers, [ada, bindery.clone(), press]);
    assert_eq!(store.forget_peer(&bindery.key(), 1).await, Ok(true));
    drop(store);
    migrate_to(&mut file.raw(), BEFORE_CIRCLES).unwrap();
    let peers: i64 = file.raw().query_row("SELECT count(*) FROM peers", [], |row| row.get(0)).unwrap();
    assert_eq!(peers, 2);
}

#[test]
fn schema_that_does_not_exist_yet_cannot_be_asked_for() {
    let mut connection = Connection::open_in_memory().unwrap();
    let refused = migrate_to(&mut connection, SCHEMA_VERSION + 1).unwrap_err();
    assert_eq!(refused.code(), "newer_schema");
    assert!(schema(&connection).is_empty());
}

#[tokio::test]
async fn file_of_a_newer_schema_is_refused_and_not_touched() {
    let file = File::lived_in().await;
    file.raw().pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    let before = file.bytes();
    assert_eq!(refusals(&file), ["newer_schema"; 3]);
    assert_eq!(file.bytes(), before);
}

#[tokio::test]
async fn file_with_views_of_a_newer_format_is_refused_and_not_touched() {
    let file = File::lived_in().await;
    let newer = [VIEW_FORMAT + 1];
    file.raw().execute("UPDATE meta SET value = ?1 WHERE name = 'view_format'", newer).unwrap();
    let before = file.bytes();
    assert_eq!(refusals(&file), ["newer_views"; 3]);
    assert_eq!(file.bytes(), before);
}

#[tokio::test]
async fn views_of_a_lower_format_are_written_anew_when_the_store_is_opened() {
    let file = File::lived_in().await;
    let before = sight(&file.open()).await;
    for older in [
        "UPDATE meta SET value = value - 1 WHERE name = 'view_format'",
        "DELETE FROM meta WHERE name = 'view_format'",
    ] {
        let raw = file.raw();
        assert_eq!(raw.execute(older, []).unwrap(), 1);
        raw.execute("UPDATE jobs SET view = '{\"of\":\"an older longhaul\"}', state = 'old'", []).unwrap();
        drop(raw);
        assert_eq!(sight(&file.open()).await, before);
        assert!(file.verified().differences.is_empty());
        let format: i64 = file
            .raw()
            .query_row("SELECT value FROM meta WHERE name = 'view_format'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(format, VIEW_FORMAT);
    }
}

#[tokio::test]
async fn views_that_cannot_be_written_anew_are_left_as_they_are() {
    let file = File::lived_in().await;
    file.tamper("UPDATE facts SET actor = 'nobody' WHERE stream = 'work-done' AND version = 2", 1);
    file.raw().execute("DELETE FROM meta WHERE name = 'view_format'", []).unwrap();
    let refused = SqliteStore::open(&SqliteOptions::at(file.path())).err().unwrap();
    assert_eq!(refused.code(), "views_not_rebuilt");
    assert!(refused.to_string().contains("work-done"), "{refused}");
    let views: i64 = file.raw().query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(views, 6);
}

#[test]
fn file_of_an_older_schema_is_not_brought_up_to_date_by_reading() {
    let file = File::missing();
    drop(file.open());
    migrate_to(&mut file.raw(), 1).unwrap();
    let before = file.bytes();
    assert_eq!(open_for_reading(&file.path()).unwrap_err().code(), "older_schema");
    assert_eq!(file.bytes(), before);
}
