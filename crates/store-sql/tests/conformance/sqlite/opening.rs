//! Opening: what is not ours, not whole or not free is refused by name, and not a byte of it is changed.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use store_sql::{OpenError, SqliteOptions, SqliteStore, open_for_reading, open_for_rebuilding};

use super::file::File;
use crate::given::sight;

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(&SqliteOptions::at(path))
}

/// Opens the file in every way; each is refused with this code, and the file stays as it is.
fn check_refused(file: &File, code: &str) {
    let before = file.bytes();
    for _ in 0..2 {
        let refused = [
            open(&file.path()).err(),
            open_for_reading(&file.path()).err(),
            open_for_rebuilding(&file.path()).err(),
        ];
        for refused in refused {
            let refused = refused.unwrap_or_else(|| panic!("a file that should be {code} was opened"));
            assert_eq!(refused.code(), code, "{refused}");
            assert!(refused.to_string().contains("longhaul.sqlite"), "{refused}");
        }
    }
    assert!(file.bytes() == before, "the file was changed");
}

/// Another program's database.
fn foreign(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)").unwrap();
    connection.execute("INSERT INTO notes (note) VALUES ('mine')", []).unwrap();
    connection
}

#[test]
fn database_of_another_program_is_refused() {
    let file = File::missing();
    drop(foreign(&file.path()));
    check_refused(&file, "foreign_database");
}

#[test]
fn empty_database_that_another_program_has_marked_is_refused() {
    let file = File::missing();
    Connection::open(file.path()).unwrap().pragma_update(None, "application_id", 7).unwrap();
    check_refused(&file, "foreign_database");
}

#[test]
fn database_of_another_program_keeps_its_log_as_it_is() {
    let elsewhere = File::missing();
    let other_program = foreign(&elsewhere.path());
    other_program.pragma_update(None, "journal_mode", "WAL").unwrap();
    other_program.execute("INSERT INTO notes (note) VALUES ('only in the log')", []).unwrap();
    // As after a crash of the other program: its log was never moved into its file.
    let file = File::holding(&elsewhere.bytes());
    let log = |path: &Path| path.with_extension("sqlite-wal");
    fs::copy(log(&elsewhere.path()), log(&file.path())).unwrap();
    let before = fs::read(log(&file.path())).unwrap();
    assert!(!before.is_empty());

    check_refused(&file, "foreign_database");
    assert!(fs::read(log(&file.path())).unwrap() == before, "the log was changed");
}

#[test]
fn file_that_is_no_database_is_refused() {
    check_refused(
        &File::holding(b"just some notes of mine, longer than a header of SQLite would be ........\n"),
        "not_a_database",
    );
    check_refused(&File::holding(&vec![0x5a; 70_000]), "not_a_database");
}

#[tokio::test]
async fn store_that_was_cut_short_is_refused() {
    let whole = File::lived_in().await.bytes();
    for kept in [100, 4_096, whole.len() / 2, whole.len() - 4_096] {
        check_refused(&File::holding(&whole[..kept]), "not_a_database");
    }
}

#[test]
fn store_that_is_missing_is_not_made_by_reading_or_rebuilding() {
    let file = File::missing();
    for refused in [open_for_reading(&file.path()).err(), open_for_rebuilding(&file.path()).err()] {
        assert_eq!(refused.unwrap().code(), "store_missing");
    }
    assert_eq!(fs::read_dir(file.path().parent().unwrap()).unwrap().count(), 0);
    assert_eq!(open(&file.path().join("deeper")).err().unwrap().code(), "store_io");
}

#[test]
fn folder_where_a_store_should_be_is_refused() {
    let file = File::missing();
    fs::create_dir(file.path()).unwrap();
    assert_eq!(open(&file.path()).err().unwrap().code(), "store_refused");
}

#[tokio::test]
async fn second_daemon_is_refused_and_told_who_has_the_store() {
    let file = File::lived_in().await;
    let first = file.open();
    let before = sight(&first).await;
    let pid = std::process::id();
    for refused in [open(&file.path()).err(), open_for_rebuilding(&file.path()).err()] {
        let refused = refused.unwrap();
        assert_eq!(refused.code(), "store_locked");
        assert!(refused.to_string().contains(&format!("process {pid};")), "{refused}");
    }
    assert_eq!(sight(&first).await, before);
    // Reading goes on beside it.
    assert!(open_for_reading(&file.path()).is_ok());
    drop(first);
    assert_eq!(sight(&file.open()).await, before);
}

#[tokio::test]
async fn store_that_is_opened_and_closed_keeps_every_byte() {
    let file = File::lived_in().await;
    let before = file.bytes();
    drop(file.open());
    assert!(file.bytes() == before, "opening alone wrote to the file");
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn open_that_fails_half_way_leaves_no_thread_and_no_lock_behind() {
    const FEW_FILES: &str = "LONGHAUL_TEST_WITH_FEW_FILES";
    if std::env::var_os(FEW_FILES).is_none() {
        // Alone in a process that runs out of files while the readers are opened.
        let again = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sqlite::opening::open_that_fails_half_way_leaves_no_thread_and_no_lock_behind",
            ])
            .env(FEW_FILES, "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let file = File::missing();
    let many = SqliteOptions { readers: 200, ..SqliteOptions::at(file.path()) };
    let before = threads();
    for _ in 0..3 {
        assert!(SqliteStore::open(&many).is_err());
        assert_eq!(threads(), before);
    }
    // Two readers, the writer, the checkpoints.
    let _store = file.open();
    assert_eq!(threads(), before + 4);
}
