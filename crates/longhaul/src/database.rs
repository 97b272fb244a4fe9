//! Where the store is: one file in the data directory, or a PostgreSQL database that several nodes share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use domain::Timestamp;
use executors::process::Artifacts;
use store::Store;
use store_sql::{Durability, PostgresAddress, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};

use crate::client::DATA_DIR;
use crate::daemon::check_for_file;

/// The store of a data directory.
pub const STORE_FILE: &str = "longhaul.sqlite";
/// What commands have said lies beside it.
pub const OUTPUT_DIR: &str = "artifacts";

/// The arguments of a command that needs the store itself.
#[derive(Args)]
pub struct Location {
    /// The directory with longhaul.sqlite in it
    #[arg(long, default_value = DATA_DIR, env = "LONGHAUL_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    #[command(flatten)]
    database: DatabaseArgument,
}

/// The argument that names a database.
#[derive(Args, Clone, Default)]
pub struct DatabaseArgument {
    /// A PostgreSQL database instead of the file, as <postgres://user:password@host:5432/database>
    #[arg(long, env = "LONGHAUL_DATABASE", value_name = "URL", hide_env_values = true)]
    database: Option<String>,
}

/// Where the store is.
pub enum Place {
    File(PathBuf),
    Server(Box<PostgresAddress>),
}

impl Location {
    pub fn place(&self) -> Result<Place> {
        self.database.place(&self.data_dir)
    }

    /// The same for a verb that needs a store that is there: where it has gone, what is left of it says where to look.
    pub fn place_of_store(&self) -> Result<Place> {
        let place = self.place()?;
        if matches!(&place, Place::File(file) if !file.exists()) {
            check_for_file(&self.data_dir)?;
        }
        Ok(place)
    }

    /// What lies beside the store: artifacts, and the keys of a file.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

impl DatabaseArgument {
    /// The file of the data directory, unless a database is named.
    pub fn place(&self, data_dir: &Path) -> Result<Place> {
        Ok(match &self.database {
            None => Place::File(data_dir.join(STORE_FILE)),
            Some(address) => Place::Server(Box::new(PostgresAddress::parse(address)?)),
        })
    }
}

/// A store that a daemon works on.
#[derive(Clone)]
pub enum Opened {
    File(Arc<SqliteStore>),
    Server(Arc<PostgresStore>),
}

impl Opened {
    /// Opens the store, making it if it is not there, and brings it up to date. A file that is damaged or has lost commits is refused, unless
    /// somebody accepted that at this time.
    pub async fn open(place: &Place, durability: Durability, accept_loss: Option<Timestamp>) -> Result<Self> {
        Ok(match place {
            Place::File(path) => {
                let options = SqliteOptions { durability, accept_loss, ..SqliteOptions::at(path) };
                Self::File(Arc::new(SqliteStore::open(&options)?))
            }
            Place::Server(address) => {
                let options = PostgresOptions { durability, ..PostgresOptions::at((**address).clone()) };
                Self::Server(Arc::new(PostgresStore::open(&options).await?))
            }
        })
    }

    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::File(store) => store.clone(),
            Self::Server(store) => store.clone(),
        }
    }

    /// Artifacts that other nodes read too, if there may be any.
    pub fn share(&self, artifacts: Artifacts) -> Artifacts {
        match self {
            Self::File(_) => artifacts,
            Self::Server(store) => artifacts.shared_through(store.clone()),
        }
    }

    /// Waits until the store stops for good, and says why: the disk failed, or another longhaul has changed the schema.
    pub async fn stopped(&self) -> String {
        match self {
            Self::File(store) => store.stopped().await,
            Self::Server(store) => store.stopped().await,
        }
    }
}
