//! Access tokens: kept and revoked through the writer, read beside it. No fact is ever written here.

use domain::{Digest, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{MAX_TOKENS, StoreError, Token};

use super::failure::read_failed;
use super::writer::Answer;
use crate::dialect::Sql;
use crate::rows::{signed, unsigned};

/// A request about tokens.
pub(crate) enum TokenRequest {
    Keep(Token),
    Revoke { id: String, at: Timestamp },
}

impl TokenRequest {
    /// Roughly how many bytes it holds in the queue.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Keep(token) => token.name.len() + token.scopes.iter().map(String::len).sum::<usize>(),
            Self::Revoke { id, .. } => id.len(),
        }
    }
}

/// Carries it out in the open transaction. The outer error is the database's, the inner one the answer.
pub(crate) fn carry_out(
    connection: &Connection,
    request: &TokenRequest,
) -> rusqlite::Result<Result<Answer, StoreError>> {
    match request {
        TokenRequest::Keep(token) => Ok(keep(connection, token)?.map(|()| Answer::Done)),
        TokenRequest::Revoke { id, at } => Ok(Ok(Answer::Revoked(revoke(connection, id, *at)?))),
    }
}

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

fn keep(connection: &Connection, token: &Token) -> rusqlite::Result<Result<(), StoreError>> {
    let known: bool = connection
        .prepare_cached(IS_KNOWN.sqlite())?
        .query_row(params![token.id, token.sha256.0], |row| row.get(0))?;
    if known {
        return Ok(Err(StoreError::Conflict));
    }
    let count = connection.prepare_cached(TOKEN_COUNT.sqlite())?.query_row([], |row| unsigned(row, 0))?;
    if count >= MAX_TOKENS as u64 && connection.prepare_cached(FORGET_REVOKED.sqlite())?.execute([])? == 0 {
        return Ok(Err(Token::too_many()));
    }
    connection.prepare_cached(INSERT_TOKEN.sqlite())?.execute(params![
        token.id,
        token.sha256.0,
        token.name,
        token.role,
        token.encode_scopes(),
        token.circle,
        token.peer_id,
        token.created_at.micros(),
        token.revoked_at.map(Timestamp::micros),
    ])?;
    Ok(Ok(()))
}

static REVOKE: Sql = Sql::new("UPDATE tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1");

fn revoke(connection: &Connection, id: &str, at: Timestamp) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached(REVOKE.sqlite())?.execute(params![id, at.micros()])? > 0)
}

/// The columns of a token, in the order of `read_token`.
macro_rules! token_columns {
    () => {
        "id, sha256, name, role, scopes, circle, peer_id, created_at, revoked_at"
    };
}

static TOKEN: Sql = Sql::new(concat!("SELECT ", token_columns!(), " FROM tokens WHERE sha256 = $1"));

pub(crate) fn token(connection: &Connection, sha256: Digest) -> Result<Option<Token>, StoreError> {
    connection
        .prepare_cached(TOKEN.sqlite())
        .and_then(|mut statement| statement.query_row([sha256.0], read_token).optional())
        .map_err(read_failed)
}

static TOKENS: Sql =
    Sql::new(concat!("SELECT ", token_columns!(), " FROM tokens ORDER BY created_at, id LIMIT $1"));

pub(crate) fn tokens(connection: &Connection) -> Result<Vec<Token>, StoreError> {
    connection
        .prepare_cached(TOKENS.sqlite())
        .and_then(|mut statement| statement.query_map([signed(MAX_TOKENS as u64)], read_token)?.collect())
        .map_err(read_failed)
}

fn read_token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let scopes: String = row.get(4)?;
    Ok(Token {
        id: row.get(0)?,
        sha256: Digest(row.get(1)?),
        name: row.get(2)?,
        role: row.get(3)?,
        scopes: Token::decode_scopes(&scopes)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(4, Type::Text, Box::new(error)))?,
        circle: row.get(5)?,
        peer_id: row.get(6)?,
        created_at: Timestamp::from_micros(row.get(7)?),
        revoked_at: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_micros),
    })
}
