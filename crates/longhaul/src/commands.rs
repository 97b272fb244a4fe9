//! One file per verb, and how each of them fails: a stable code and a text on standard error, exit code 1.

pub mod export;
pub mod progress;
pub mod rebuild;
pub mod supervise;
pub mod verify;

use std::process::ExitCode;

use store::StoreError;
use store_sql::OpenError;

/// Says why a command failed.
pub fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error[{}]: {error:#}", code(error));
    ExitCode::FAILURE
}

fn code(error: &anyhow::Error) -> &'static str {
    if let Some(error) = error.downcast_ref::<OpenError>() {
        error.code()
    } else if let Some(error) = error.downcast_ref::<StoreError>() {
        error.code()
    } else if error.is::<std::io::Error>() {
        "io"
    } else {
        "failed"
    }
}
