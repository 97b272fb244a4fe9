//! A schema for a while: made for a drill or a bench on somebody's own server, and taken away with all that is in it.
//!
//! Whatever is done here is done to sessions and tables of that schema alone.

use super::address::PostgresAddress;
use super::failure::PostgresError;
use super::session::{Session, bare};
use crate::OpenError;

/// A schema of its own in a database.
pub struct ScratchSchema {
    name: String,
    /// Of the database.
    server: PostgresAddress,
    /// Of a store in the schema, with the password.
    address: String,
}

/// It cannot be made, or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The server cannot be spoken to.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was told, and did not do it.
    #[error("the database refuses: {0}; the user of --database needs the right to make schemas")]
    Refused(#[from] PostgresError),
    /// The address says more than we could keep.
    #[error("the address has options of its own; leave `options` and `application_name` out")]
    Options,
}

impl ScratchError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Open(error) => error.code(),
            Self::Refused(_) => "database_rights",
            Self::Options => "database_address",
        }
    }
}

/// The version of the server at this address.
pub async fn server_version(server: &str) -> Result<String, ScratchError> {
    let session = Session::connect(&PostgresAddress::parse(server)?, None).await?;
    let statement = session.prepare("SELECT current_setting('server_version')").await?;
    let rows = session.rows(&statement, &[]).await?;
    Ok(rows.first().map(|row| row.get(0)).unwrap_or_default())
}

impl ScratchSchema {
    /// Makes it, under a name of letters, digits and underscores.
    pub async fn make(server: &str, name: &str) -> Result<Self, ScratchError> {
        debug_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name} needs no quotes");
        if ["options=", "application_name="].iter().any(|option| server.contains(option)) {
            return Err(ScratchError::Options);
        }
        let joint = if server.contains('?') { '&' } else { '?' };
        let address = format!("{server}{joint}application_name={name}&options=-c%20search_path%3D{name}");
        let schema = Self { name: name.to_owned(), server: PostgresAddress::parse(server)?, address };
        let session = Session::connect(&schema.server, None).await?;
        session.run(&format!("CREATE SCHEMA {name}")).await?;
        Ok(schema)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of a store in it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A connection into it that knows nothing of the store, for what is measured beside it. It ends with the client.
    pub async fn client(&self) -> Result<tokio_postgres::Client, ScratchError> {
        Ok(bare(&PostgresAddress::parse(&self.address)?).await?)
    }

    /// Ends every session of it; how many there were.
    pub async fn end_sessions(&self) -> Result<u64, ScratchError> {
        let session = Session::connect(&self.server, None).await?;
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        let statement = session.prepare(text).await?;
        Ok(session.execute(&statement, &[&self.name]).await?)
    }

    /// Takes it away with all that is in it.
    pub async fn drop_it(&self) -> Result<(), ScratchError> {
        self.end_sessions().await?;
        let session = Session::connect(&self.server, None).await?;
        Ok(session.run_without_limit(&format!("DROP SCHEMA {} CASCADE", self.name)).await?)
    }
}
