//! The pages of a verify of what was touched: the streams that facts after a position are about, one after the other, each whole.
//!
//! A stream that is touched again behind the walk may come twice; one that was retired meanwhile is nothing any more.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;

use super::pages::{Message, Page, Stored, agenda, send_bodies, views};
use crate::database::{Database, Ending, Purpose, text, unsigned};
use crate::dialect::Sql;
use crate::rows::signed;
use crate::walk::{PAGE, stream_page};

static TOUCHED: Sql =
    Sql::new("SELECT position, stream FROM facts WHERE position > $1 ORDER BY position LIMIT $2");

/// Sends every stream that was touched after the position; how far the ledger went.
pub(super) async fn read_touched<D: Database>(
    database: &D,
    after: u64,
    send: &SyncSender<Message>,
) -> Result<u64, D::Error> {
    let mut position = after;
    loop {
        let given = [signed(position).into(), signed(PAGE as u64).into()];
        let page = database.query(&TOUCHED, &given, |row| Ok((unsigned(row, 0)?, text(row, 1)?))).await?;
        let Some((last, _)) = page.last() else { return Ok(position) };
        position = *last;
        let streams: BTreeSet<String> = page.into_iter().map(|(_, stream)| stream).collect();
        for stream in streams {
            read_stream(database, &stream, send).await?;
        }
    }
}

/// One stream and what is stored of it. Whatever is stored is read with its last facts, at one moment.
async fn read_stream<D: Database>(
    database: &D,
    stream: &str,
    send: &SyncSender<Message>,
) -> Result<(), D::Error> {
    let mut version = 0;
    loop {
        database.begin(Purpose::Read).await?;
        let page = read_page(database, stream, &mut version, send).await;
        database.end(Ending::RollBack).await?;
        let page = page?;
        let last = page.facts.last;
        if send.send(Message::Page(page)).is_err() || last {
            return Ok(());
        }
    }
}

async fn read_page<D: Database>(
    database: &D,
    stream: &str,
    version: &mut i64,
    send: &SyncSender<Message>,
) -> Result<Page, D::Error> {
    let begun = *version > 0;
    let facts = stream_page(database, stream, version).await?;
    let retired = begun && facts.facts.is_empty();
    let mut stored = Stored::default();
    if facts.last {
        // No id comes between; a NUL is no text to PostgreSQL.
        let until = format!("{stream}\u{1}");
        stored.views = views(database, stream, &until).await?;
        stored.agenda = agenda(database, stream, &until).await?;
        send_bodies(database, stream, &until, send).await?;
    }
    Ok(Page { facts, stored, retired })
}
