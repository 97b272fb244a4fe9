//! Access tokens: kept and revoked through the writer, read beside it. No fact is ever written here.

use domain::{Digest, Timestamp};
use store::{MAX_TOKENS, StoreError, Token};

use crate::database::{Columns, Database, Unfit, digest, integer, one, optional_text, text, unsigned};
use crate::dialect::Sql;
use crate::rows::{optional_time, signed, time};

static IS_KNOWN: Sql = Sql::new("SELECT EXISTS (SELECT 1 FROM tokens WHERE id = $1 OR sha256 = $2)");
static TOKEN_COUNT: Sql = Sql::new("SELECT count(*) FROM tokens");
static FORGET_REVOKED: Sql = Sql::new(
    "DELETE FROM tokens WHERE id IN \
     (SELECT id FROM tokens WHERE revoked_at IS NOT NULL ORDER BY revoked_at, id LIMIT 1)",
);
static INSERT_TOKEN: Sql = Sql::new(
    "INSERT INTO tokens (id, sha256, name, role, scopes, circle, peer_id, created_at, revoked_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
);

pub(crate) async fn keep<D: Database>(
    database: &D,
    token: &Token,
) -> Result<Result<(), StoreError>, D::Error> {
    let digest = &token.sha256.0[..];
    let names = [token.id.as_str().into(), digest.into()];
    if one(database, &IS_KNOWN, &names, |row| integer(row, 0)).await?.unwrap_or_default() != 0 {
        return Ok(Err(StoreError::Conflict));
    }
    let count = one(database, &TOKEN_COUNT, &[], |row| unsigned(row, 0)).await?.unwrap_or_default();
    if count >= MAX_TOKENS as u64 && database.execute(&FORGET_REVOKED, &[]).await? == 0 {
        return Ok(Err(Token::too_many()));
    }
    let scopes = token.encode_scopes();
    let given = [
        token.id.as_str().into(),
        digest.into(),
        token.name.as_str().into(),
        token.role.as_str().into(),
        scopes.as_str().into(),
        token.circle.as_deref().into(),
        token.peer_id.as_deref().into(),
        token.created_at.micros().into(),
        token.revoked_at.map(Timestamp::micros).into(),
    ];
    database.execute(&INSERT_TOKEN, &given).await?;
    Ok(Ok(()))
}

static REVOKE: Sql = Sql::new("UPDATE tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1");

pub(crate) async fn revoke<D: Database>(database: &D, id: &str, at: Timestamp) -> Result<bool, D::Error> {
    Ok(database.execute(&REVOKE, &[id.into(), at.micros().into()]).await? > 0)
}

/// The columns of a token, in the order of `read_token`.
macro_rules! token_columns {
    () => {
        "id, sha256, name, role, scopes, circle, peer_id, created_at, revoked_at"
    };
}

static TOKEN: Sql = Sql::new(concat!("SELECT ", token_columns!(), " FROM tokens WHERE sha256 = $1"));

pub(crate) async fn token<D: Database>(database: &D, sha256: Digest) -> Result<Option<Token>, StoreError> {
    one(database, &TOKEN, &[sha256.0[..].into()], read_token).await.map_err(D::read_failed)
}

static TOKENS: Sql =
    Sql::new(concat!("SELECT ", token_columns!(), " FROM tokens ORDER BY created_at, id LIMIT $1"));

pub(crate) async fn tokens<D: Database>(database: &D) -> Result<Vec<Token>, StoreError> {
    let most = signed(MAX_TOKENS as u64);
    database.query(&TOKENS, &[most.into()], read_token).await.map_err(D::read_failed)
}

fn read_token(row: &dyn Columns) -> Result<Token, Unfit> {
    Ok(Token {
        id: text(row, 0)?,
        sha256: Digest(digest(row, 1)?),
        name: text(row, 2)?,
        role: text(row, 3)?,
        scopes: Token::decode_scopes(&text(row, 4)?).map_err(|error| Unfit::new(4, error))?,
        circle: optional_text(row, 5)?,
        peer_id: optional_text(row, 6)?,
        created_at: time(row, 7)?,
        revoked_at: optional_time(row, 8)?,
    })
}
