//! Ctrl-C while a command is followed: says that it goes on, and how to see or stop it, or asks to stop it.

use std::process::exit;

use anyhow::Result;
use api::{CancelJob, StatusAnswer};
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Call, Connection, job_path};

/// What a shell says of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// What the first Ctrl-C does to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// It goes on, and nobody follows it any more.
    Leave,
    /// It is asked to stop, and followed to its end. The second one leaves it.
    Cancel,
}

/// Listens from now on, beside whoever follows the job.
pub fn listen(connection: Connection, job_id: String, first: OnInterrupt) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupts = {
        let _in_runtime = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupts.recv());
        if first == OnInterrupt::Cancel {
            eprintln!("\nlonghaul: asking to stop job {job_id}; Ctrl-C again leaves it");
            if let Err(told) = cancel(&connection, &job_id) {
                eprintln!("longhaul: not cancelled: {told}");
            }
            runtime.block_on(interrupts.recv());
        }
        eprintln!(
            "\nlonghaul: job {job_id} goes on; `longhaul jobs logs {job_id} --follow` shows its output, \
             `longhaul jobs cancel {job_id}` stops it"
        );
        exit(INTERRUPTED);
    });
    Ok(())
}

fn cancel(connection: &Connection, job_id: &str) -> Result<()> {
    let sent = CancelJob { reason: Some("interrupted".to_owned()), requested_by_peer_id: None };
    let _: StatusAnswer<'static> =
        connection.client()?.call(Call::post(&job_path(job_id, "/cancel"), &sent))?;
    Ok(())
}
