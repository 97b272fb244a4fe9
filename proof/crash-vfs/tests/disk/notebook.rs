//! The database that the tests write: numbered notes, each one transaction of two rows, and the check of
//! what a crash left of them.

use std::time::Duration;

use crash_vfs::{Disk, Image};
use rusqlite::{Connection, OpenFlags, Result};

/// Long enough that it never decides a test.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// What a crash left of the notes 1, 2, 3 and so on.
pub enum Remains {
    /// Notes 1 to this one, all whole; 0 also where there is no notebook yet.
    Whole(u32),
    /// A damaged database, half a note, or a gap.
    Broken(String),
}

pub fn open(disk: &Disk) -> Result<Connection> {
    let connection = Connection::open_with_flags_and_vfs("notebook", OpenFlags::default(), disk.vfs_name())?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

pub fn create(connection: &Connection) -> Result<()> {
    connection.execute_batch("CREATE TABLE note (number INTEGER, half INTEGER, text TEXT)")
}

/// An empty notebook in WAL mode.
pub fn create_in_wal(disk: &Disk) -> Result<Connection> {
    let connection = open(disk)?;
    change_to_wal(&connection)?;
    create(&connection)?;
    Ok(connection)
}

/// Reads the pragma to its end: the change is committed after its row, and whoever takes only the row, as
/// `query_row` and `execute_batch` do, never hears that it failed and goes on without a WAL.
fn change_to_wal(connection: &Connection) -> Result<()> {
    let mut pragma = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = pragma.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

pub fn write_note(connection: &mut Connection, number: u32) -> Result<()> {
    let transaction = connection.transaction()?;
    for half in [0, 1] {
        let text = format!("half {half} of note {number}");
        transaction.execute("INSERT INTO note VALUES (?1, ?2, ?3)", (number, half, text))?;
    }
    transaction.commit()
}

pub fn count_notes(connection: &Connection) -> Result<u32> {
    connection.query_row("SELECT count(*) FROM note WHERE half = 1", [], |row| row.get(0))
}

/// Opens the image with a fresh SQLite, lets it recover, and looks at every note.
pub fn remains(image: &Image) -> Remains {
    match read(image) {
        Ok(remains) => remains,
        Err(error) => Remains::Broken(error.to_string()),
    }
}

fn read(image: &Image) -> Result<Remains> {
    let connection = open(&Disk::from_image(image))?;
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(Remains::Broken(verdict));
    }
    if !connection.table_exists(None, "note")? {
        return Ok(Remains::Whole(0));
    }
    let mut statement = connection.prepare("SELECT number, half FROM note ORDER BY number, half")?;
    let halves: Vec<(u32, u32)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?;
    let whole = halves.last().map_or(0, |(number, _)| *number);
    let expected = (1..=whole).flat_map(|number| [(number, 0), (number, 1)]);
    if halves.iter().copied().eq(expected) {
        Ok(Remains::Whole(whole))
    } else {
        Ok(Remains::Broken(format!("notes are not whole: {halves:?}")))
    }
}
