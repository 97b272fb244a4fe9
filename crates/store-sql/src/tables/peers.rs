//! Peers: kept, forgotten and sighted through the writer, read beside it. No fact is ever written here.

use domain::Json;
use domain::peer::{MAX_PEERS, Peer, PeerKey, Presence, Sighting};
use store::{OfCircle, PeerPage, PeerQuery, StoreError, decode_words, encode_words, too_many_peers};

use crate::database::{Columns, Database, Given, Unfit, one, optional_text, text, unsigned};
use crate::dialect::Sql;
use crate::rows::{signed, time};

/// The columns of a peer, in the order of `read_peer`.
macro_rules! peer_columns {
    () => {
        "id, display_name, circle, labels, capabilities, path, backend, metadata, registered_by, registered_at, \
         version, present_on, seen_at"
    };
}

static PEER_COUNT: Sql = Sql::new("SELECT count(*) FROM peers");
static INSERT_PEER: Sql = Sql::new(concat!(
    "INSERT INTO peers (",
    peer_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (id, circle) DO NOTHING"
));
static UPDATE_PEER: Sql = Sql::new(
    "UPDATE peers SET display_name = $2, labels = $4, capabilities = $5, path = $6, backend = $7, \
     metadata = $8, registered_by = $9, registered_at = $10, version = $11, present_on = $12, seen_at = $13 \
     WHERE id = $1 AND circle = $3 AND version = $11 - 1",
);
static FORGET_PEER: Sql = Sql::new("DELETE FROM peers WHERE id = $1 AND circle = $2 AND version = $3");

pub(crate) async fn keep<D: Database>(database: &D, peer: &Peer) -> Result<Result<(), StoreError>, D::Error> {
    let is_new = peer.version == 1;
    if is_new {
        let count = one(database, &PEER_COUNT, &[], |row| unsigned(row, 0)).await?.unwrap_or_default();
        if count >= MAX_PEERS as u64 {
            return Ok(Err(too_many_peers()));
        }
    }
    let (labels, capabilities) = (encode_words(&peer.labels), encode_words(&peer.capabilities));
    let given = [
        peer.id.as_str().into(),
        peer.display_name.as_str().into(),
        circle_text(peer.circle.as_deref()),
        labels.as_str().into(),
        capabilities.as_str().into(),
        peer.path.as_deref().into(),
        peer.backend.as_deref().into(),
        peer.metadata.as_str().into(),
        peer.registered_by.as_str().into(),
        peer.registered_at.micros().into(),
        signed(peer.version).into(),
        peer.present_on.as_deref().into(),
        peer.seen_at.micros().into(),
    ];
    let statement = if is_new { &INSERT_PEER } else { &UPDATE_PEER };
    let written = database.execute(statement, &given).await?;
    Ok(if written == 0 { Err(StoreError::Conflict) } else { Ok(()) })
}

static HAS_COME: Sql =
    Sql::new("UPDATE peers SET present_on = $3, seen_at = $4 WHERE id = $1 AND circle = $2");
// Another node may hear of it by now.
static HAS_GONE: Sql = Sql::new(
    "UPDATE peers SET present_on = NULL, seen_at = $4 WHERE id = $1 AND circle = $2 AND present_on = $3",
);

pub(crate) async fn forget<D: Database>(database: &D, key: &PeerKey, version: u64) -> Result<bool, D::Error> {
    let given = [key.id.as_str().into(), circle_text(key.circle.as_deref()), signed(version).into()];
    Ok(database.execute(&FORGET_PEER, &given).await? > 0)
}

pub(crate) async fn sight<D: Database>(database: &D, sighting: &Sighting) -> Result<(), D::Error> {
    let statement = match sighting.presence {
        Presence::Present => &HAS_COME,
        Presence::Absent => &HAS_GONE,
    };
    let given = [
        sighting.id.as_str().into(),
        circle_text(sighting.circle.as_deref()),
        sighting.node.as_str().into(),
        sighting.seen_at.micros().into(),
    ];
    database.execute(statement, &given).await?;
    Ok(())
}

static PEER: Sql = Sql::new(concat!("SELECT ", peer_columns!(), " FROM peers WHERE id = $1 AND circle = $2"));

pub(crate) async fn peer<D: Database>(database: &D, key: &PeerKey) -> Result<Option<Peer>, StoreError> {
    let given = [key.id.as_str().into(), circle_text(key.circle.as_deref())];
    one(database, &PEER, &given, read_peer).await.map_err(D::read_failed)
}

static ALL: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE (id, circle) > ($1, $3) ORDER BY id, circle LIMIT $2"
));
static WITH_ID: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE (id, circle) > ($1, $3) AND id = $4 ORDER BY id, circle LIMIT $2"
));
static OF_CIRCLE: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE id > $1 AND circle = $3 ORDER BY id LIMIT $2"
));
static CALLED: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE (id, circle) > ($1, $3) AND display_name = $4 ORDER BY id, circle LIMIT $2"
));
static CALLED_IN_CIRCLE: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE id > $1 AND display_name = $3 AND circle = $4 ORDER BY id LIMIT $2"
));
static IN_FOLDER: Sql = Sql::new(concat!(
    "SELECT ",
    peer_columns!(),
    " FROM peers WHERE id > $1 AND path = $3 AND circle = $4 ORDER BY id LIMIT $2"
));

pub(crate) async fn peers<D: Database>(database: &D, query: &PeerQuery) -> Result<PeerPage, StoreError> {
    let after = query.after.as_ref();
    let after_id = after.map_or("", |after| after.id.as_str());
    let after_circle = || circle_text(after.and_then(|after| after.circle.as_deref()));
    let mut given: Vec<Given<'_>> = vec![after_id.into(), signed(query.limit as u64).into()];
    let statement = match (&query.id, &query.circle, &query.display_name, &query.path) {
        (Some(id), _, _, _) => {
            given.extend([after_circle(), id.as_str().into()]);
            &WITH_ID
        }
        (None, OfCircle::Any, None, _) => {
            given.push(after_circle());
            &ALL
        }
        (None, OfCircle::Any, Some(name), _) => {
            given.extend([after_circle(), name.as_str().into()]);
            &CALLED
        }
        (None, OfCircle::Only(circle), Some(name), _) => {
            given.extend([name.as_str().into(), circle_text(circle.as_deref())]);
            &CALLED_IN_CIRCLE
        }
        (None, OfCircle::Only(circle), None, Some(path)) => {
            given.extend([path.as_str().into(), circle_text(circle.as_deref())]);
            &IN_FOLDER
        }
        (None, OfCircle::Only(circle), None, None) => {
            given.push(circle_text(circle.as_deref()));
            &OF_CIRCLE
        }
    };
    let looked_at = database.query(statement, &given, read_peer).await.map_err(D::read_failed)?;
    Ok(query.page(looked_at))
}

/// No circle is an empty text, so that it can be compared.
pub(crate) fn circle_text(circle: Option<&str>) -> Given<'_> {
    circle.unwrap_or_default().into()
}

/// The circle that such a text means.
pub(crate) fn circle_of(row: &dyn Columns, column: usize) -> Result<Option<String>, Unfit> {
    Ok(Some(text(row, column)?).filter(|circle| !circle.is_empty()))
}

fn read_peer(row: &dyn Columns) -> Result<Peer, Unfit> {
    let words = |column: usize| decode_words(&text(row, column)?).map_err(|error| Unfit::new(column, error));
    Ok(Peer {
        id: text(row, 0)?,
        display_name: text(row, 1)?,
        circle: circle_of(row, 2)?,
        labels: words(3)?,
        capabilities: words(4)?,
        path: optional_text(row, 5)?,
        backend: optional_text(row, 6)?,
        metadata: Json::parse(&text(row, 7)?).map_err(|refusal| Unfit::new(7, refusal))?,
        registered_by: text(row, 8)?,
        registered_at: time(row, 9)?,
        version: unsigned(row, 10)?,
        present_on: optional_text(row, 11)?,
        seen_at: time(row, 12)?,
    })
}
