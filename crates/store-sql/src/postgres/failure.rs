//! What an error of PostgreSQL means for the caller and for the connection.

use store::StoreError;
use tokio_postgres::error::SqlState;

use super::PostgresAddress;
use crate::OpenError;
use crate::database::Unfit;

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PostgresError {
    /// The connection has gone, and with it the answer; what was asked may have happened if it was a commit.
    #[error("the connection to the database was lost: {0}")]
    Lost(String),
    /// The server said no to this statement; nothing of its transaction stays.
    #[error("{told} ({})", code.code())]
    Refused {
        /// Its code.
        code: SqlState,
        /// Its words.
        told: String,
    },
    /// Another longhaul has changed the schema or the views; nothing of ours was written.
    #[error("{0}")]
    Skewed(String),
    /// What is stored does not fit.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

impl OpenError {
    /// What a server's refusal means while a store is opened.
    pub(crate) fn refused(address: &PostgresAddress, error: &PostgresError) -> Self {
        let (address, reason, name) = (address.to_string(), error.to_string(), address.database().to_owned());
        match error {
            PostgresError::Lost(_) => Self::Unreachable { address, reason },
            PostgresError::Refused { code, .. } if *code == SqlState::INVALID_CATALOG_NAME => {
                Self::NoDatabase { address, name }
            }
            PostgresError::Refused { code, .. } if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                Self::ReadOnly { address }
            }
            PostgresError::Refused { code, .. }
                if code.code().starts_with("28") || *code == SqlState::INSUFFICIENT_PRIVILEGE =>
            {
                Self::Rights { address, reason }
            }
            PostgresError::Refused { code, .. } if *code == SqlState::DISK_FULL => {
                Self::Full { address, reason }
            }
            PostgresError::Refused { .. } | PostgresError::Skewed(_) | PostgresError::Unfit(_) => {
                Self::Server { address, reason }
            }
        }
    }
}

impl PostgresError {
    /// Whether the same may well succeed when it is done again at once: another transaction was in the way.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Refused { code, .. } => {
                *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::UNIQUE_VIOLATION
                    || *code == SqlState::LOCK_NOT_AVAILABLE
            }
            Self::Lost(_) | Self::Skewed(_) | Self::Unfit(_) => false,
        }
    }

    /// Whether a new connection may find the database otherwise: what a session may write is settled when it begins.
    pub(super) fn is_of_the_session(&self) -> bool {
        match self {
            Self::Refused { code, .. } => *code == SqlState::READ_ONLY_SQL_TRANSACTION,
            Self::Lost(_) | Self::Skewed(_) | Self::Unfit(_) => false,
        }
    }

    /// What the caller is told about a request of which nothing was written.
    pub(super) fn told(self) -> StoreError {
        match self {
            Self::Lost(_) | Self::Skewed(_) => StoreError::Unavailable(self.to_string()),
            Self::Unfit(unfit) => StoreError::Broken(unfit.to_string()),
            Self::Refused { ref code, .. } if *code == SqlState::DISK_FULL => StoreError::Full,
            Self::Refused { ref code, .. } if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                StoreError::Unavailable(format!("the database is read-only: {self}"))
            }
            Self::Refused { ref code, .. } if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                StoreError::Unavailable(format!("the user of the database may not do that: {self}"))
            }
            Self::Refused { ref code, .. } if is_of_the_statement(code) => {
                StoreError::Broken(self.to_string())
            }
            Self::Refused { .. } => StoreError::Unavailable(self.to_string()),
        }
    }
}

/// Classes 22, 23 and 42: the data or the statement is wrong, and will be the next time.
fn is_of_the_statement(code: &SqlState) -> bool {
    ["22", "23", "42"].iter().any(|class| code.code().starts_with(class))
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // A server that ends a connection says so before it does: shutdown, crash, terminated by an administrator.
            Some(told) if told.code().code().starts_with("57P") || told.code().code().starts_with("08") => {
                Self::Lost(told.to_string())
            }
            Some(told) => Self::Refused { code: told.code().clone(), told: told.message().to_owned() },
            None => match error.source_text() {
                Some(told) => Self::Lost(format!("{error}: {told}")),
                None => Self::Lost(error.to_string()),
            },
        }
    }
}

/// What stands behind an error.
trait SourceText {
    fn source_text(&self) -> Option<String>;
}

impl SourceText for tokio_postgres::Error {
    fn source_text(&self) -> Option<String> {
        std::error::Error::source(self).map(ToString::to_string)
    }
}
