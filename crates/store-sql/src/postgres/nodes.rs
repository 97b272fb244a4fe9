//! What nodes on one database ask of it besides: the heartbeat, a look at what comes next, and what they must have in common.
//!
//! Each is one statement outside of any batch: nobody waits for it, and a repeat does no harm.

use std::sync::LazyLock;
use std::time::Instant;

use domain::job::{AFTER_PULLED, PULLED};
use domain::{RecordId, RecordKind, Timestamp};
use store::{Node, Pulse, Ready, StoreError, Sweep};
use tokio_postgres::Row;

use super::failure::PostgresError;
use super::session::{Parameter, Session};
use super::time::StoreTime;
use super::versions::Versions;
use crate::database::{Given, Unfit, bytes, integer, text, unsigned};
use crate::nodes::{taking, values};
use crate::rows::{optional_time, time};

/// A node that was not heard of for this long is forgotten: an hour.
const FORGOTTEN_AFTER_MICROS: i64 = 3_600_000_000;

/// What a pulse says, whoever asks: in the order of `read`. `$1` and `$2` are kinds of records, `$3` the others in one
/// text, `$4` and `$5` bound the lanes that are pulled from.
macro_rules! pulse {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
         + coalesce((SELECT value FROM meta WHERE name = 'clock_correction'), 0), \
         (SELECT min(due_at) FROM agenda WHERE kind = $1::text AND due_at IS NOT NULL), \
         (SELECT min(due_at) FROM agenda WHERE kind = $2::text AND due_at IS NOT NULL), \
         (SELECT min((SELECT min(due_at) FROM agenda WHERE agenda.kind = others.kind AND due_at IS NOT NULL)) \
          FROM unnest(string_to_array($3::text, ' ')) AS others (kind)), \
         (EXISTS (SELECT 1 FROM agenda WHERE ready = 1 AND lane < $4::text) \
          OR EXISTS (SELECT 1 FROM agenda WHERE ready = 1 AND lane >= $5::text)), \
         EXISTS (SELECT 1 FROM agenda WHERE ready = 1 AND lane >= $4::text AND lane < $5::text), \
         (SELECT value FROM meta WHERE name = 'schema'), \
         (SELECT value FROM meta WHERE name = 'view_format'), "
    };
}

/// How the time of a pulse was corrected: the last columns.
macro_rules! clock {
    () => {
        ", coalesce((SELECT value FROM meta WHERE name = 'clock_correction'), 0), \
         coalesce((SELECT value FROM meta WHERE name = 'clock_revision'), 0)"
    };
}

const PULSE: &str = concat!("SELECT ", pulse!(), "(SELECT drains FROM nodes WHERE id = $6::text)", clock!());

// A heartbeat is of the time of whoever gives it, which goes on when the server's clock steps. Who was not heard of for long is forgotten by
// whichever of the two clocks is behind: neither may forget the living.
const BEAT: &str = concat!(
    "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
     + coalesce((SELECT value FROM meta WHERE name = 'clock_correction'), 0) AS at), beaten AS (\
     INSERT INTO nodes (id, name, url, version, schema_version, executors, started_at, heartbeat_at, attempts, polls, drains) \
     SELECT $6::text, $7::text, $8::text, $9::text, $10::bigint, $11::text, $12::bigint, $16::bigint, $13::bigint, $14::bigint, 0 \
     ON CONFLICT (id) DO UPDATE \
     SET heartbeat_at = excluded.heartbeat_at, attempts = excluded.attempts, polls = excluded.polls \
     RETURNING drains), forgotten AS (\
     DELETE FROM nodes USING clock WHERE heartbeat_at < LEAST(clock.at, $16::bigint) - $15::bigint AND id <> $6::text) \
     SELECT ",
    pulse!(),
    "(SELECT drains FROM beaten)",
    clock!()
);

/// A pulse, and the time as it was measured by it.
pub(super) struct Heard {
    pub(super) pulse: Pulse,
    pub(super) time: StoreTime,
}

pub(super) async fn beat(session: &Session, node: &Node) -> Result<Heard, PostgresError> {
    let executors = node.encode_executors();
    let heard_of = [FORGOTTEN_AFTER_MICROS.into(), node.heartbeat_at.micros().into()];
    let given = [&pulse_values()[..], &values(node, &executors), &heard_of].concat();
    ask(session, BEAT, &given).await
}

pub(super) async fn pulse(session: &Session, node_id: &str) -> Result<Heard, PostgresError> {
    let given = [&pulse_values()[..], &[node_id.into()]].concat();
    ask(session, PULSE, &given).await
}

/// The kinds that share a sweep.
static OTHER_KINDS: LazyLock<String> =
    LazyLock::new(|| Sweep::Records.kinds().map(RecordKind::as_str).collect::<Vec<_>>().join(" "));

/// What a pulse is asked for with: the first five of every such statement.
fn pulse_values() -> [Given<'static>; 5] {
    let kinds = [RecordKind::Job, RecordKind::Operation].map(RecordKind::as_str);
    [kinds[0].into(), kinds[1].into(), OTHER_KINDS.as_str().into(), PULLED.into(), AFTER_PULLED.into()]
}

async fn ask(
    session: &Session,
    statement: &'static str,
    given: &[Given<'_>],
) -> Result<Heard, PostgresError> {
    let statement = session.prepare(statement).await?;
    let given: Vec<Parameter<'_>> = given.iter().map(|value| value as Parameter<'_>).collect();
    let sent = Instant::now();
    let rows = session.rows(&statement, &given).await?;
    let answered = Instant::now();
    let row = rows.first().ok_or_else(|| Unfit::new(0, "the server says no time"))?;
    Versions::read(row, 6)?.check()?;
    let pulse = read(row)?;
    let time = StoreTime::measured(pulse.time, sent, answered).corrected(integer(row, 9)?, integer(row, 10)?);
    Ok(Heard { pulse, time })
}

fn read(row: &Row) -> Result<Pulse, Unfit> {
    let drains = crate::database::Columns::integer(row, 8)?;
    Ok(Pulse {
        time: time(row, 0)?,
        job_due_at: optional_time(row, 1)?,
        operation_due_at: optional_time(row, 2)?,
        routing_due_at: optional_time(row, 3)?,
        ready: ready(row, 4)?,
        pulled: ready(row, 5)?,
        taking: drains.map(taking),
    })
}

fn ready(row: &Row, column: usize) -> Result<Ready, Unfit> {
    Ok(if integer(row, column)? == 0 { Ready::None } else { Ready::Some })
}

const VERSIONS: &str = "SELECT record_id, version FROM agenda WHERE record_id = ANY($1::text[])";

pub(super) async fn versions(
    session: &Session,
    ids: &[RecordId],
) -> Result<Vec<(RecordId, u64)>, PostgresError> {
    let ids: Vec<&str> = ids.iter().map(RecordId::as_str).collect();
    let statement = session.prepare(VERSIONS).await?;
    session
        .each_row(&statement, &[&ids], |row| {
            let id = RecordId::parse(&text(row, 0)?).map_err(|refusal| Unfit::new(0, refusal))?;
            Ok::<_, Unfit>((id, unsigned(row, 1)?))
        })
        .await
}

// The first that comes with a key is heard by all: a row that is there is left alone, and read by the next statement.
const PROPOSE_KEY: &str =
    "INSERT INTO shared_keys (name, bytes) VALUES ($1::text, $2::bytea) ON CONFLICT (name) DO NOTHING";
const SHARED_KEY: &str = "SELECT bytes FROM shared_keys WHERE name = $1::text";

/// The key of this name that all nodes have in common; the one that is proposed if there was none.
pub(super) async fn shared_key(
    session: &Session,
    name: &str,
    proposed: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let agree = async {
        let statement = session.prepare(PROPOSE_KEY).await?;
        Session::execute(session, &statement, &[&name, &proposed]).await?;
        let statement = session.prepare(SHARED_KEY).await?;
        session.each_row(&statement, &[&name], |row| bytes(row, 0).map(<[u8]>::to_vec)).await
    };
    let found: Vec<Vec<u8>> = agree.await.map_err(PostgresError::told)?;
    found.into_iter().next().ok_or_else(|| StoreError::Broken(format!("there is no key {name:?}")))
}

/// The database's time, for a batch.
pub(super) fn measured(row: &Row, sent: Instant, answered: Instant) -> Result<StoreTime, PostgresError> {
    Versions::read(row, 1)?.check()?;
    let time = StoreTime::measured(Timestamp::from_micros(integer(row, 0)?), sent, answered);
    Ok(time.corrected(integer(row, 3)?, integer(row, 4)?))
}
