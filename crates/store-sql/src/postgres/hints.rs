//! Hints between nodes: one `NOTIFY` after a batch that wrote facts, heard by every other node. A hint may be lost, and may come for
//! nothing; whoever hears one looks again.
//!
//! They have a connection of their own: a batch never waits for them, and they are not synced.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio_postgres::Notification;

use super::address::PostgresAddress;
use super::session::Session;
use crate::OpenError;
use crate::database::{integer, text};

/// How long to wait before the next try, from the first to the longest.
const WAIT_FROM: Duration = Duration::from_millis(100);
const WAIT_TO: Duration = Duration::from_secs(5);

/// How writers say that others should look.
#[derive(Clone)]
pub(super) struct Hints {
    wanted: Arc<Notify>,
}

impl Hints {
    /// Hints to the other nodes, and how often others have hinted.
    pub(super) fn start(
        address: PostgresAddress,
    ) -> (Self, watch::Receiver<u64>, tokio::task::JoinHandle<()>) {
        let (heard, receiver) = watch::channel(0);
        let wanted = Arc::new(Notify::new());
        let task = tokio::spawn(keep_going(address, wanted.clone(), heard));
        (Self { wanted }, receiver, task)
    }

    /// Something was written. Several of these may become one hint.
    pub(super) fn give(&self) {
        self.wanted.notify_one();
    }
}

async fn keep_going(address: PostgresAddress, wanted: Arc<Notify>, heard: watch::Sender<u64>) {
    let mut wait = WAIT_FROM;
    loop {
        let (told, telling) = mpsc::unbounded_channel();
        if let Ok((session, channel, own)) = begin(&address, told).await {
            wait = WAIT_FROM;
            // What was hinted while nobody listened is not heard any more.
            heard.send_modify(|times| *times += 1);
            go(&session, &channel, own, &wanted, &heard, telling).await;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_TO);
    }
}

async fn begin(
    address: &PostgresAddress,
    told: mpsc::UnboundedSender<Notification>,
) -> Result<(Session, String, i32), OpenError> {
    let session = Session::connect(address, Some(told)).await?;
    let failed = |error| OpenError::refused(address, &error);
    session.run("SET synchronous_commit = off").await.map_err(failed)?;
    let statement = session
        .prepare(
            "SELECT 'longhaul_' || to_hex(hashtextextended(current_schema(), 0)), pg_backend_pid()::bigint",
        )
        .await
        .map_err(failed)?;
    let own = session
        .each_row(&statement, &[], |row| Ok::<_, crate::database::Unfit>((text(row, 0)?, integer(row, 1)?)))
        .await
        .map_err(failed)?;
    let (channel, pid) = own.into_iter().next().unwrap_or_default();
    session.run(&format!("LISTEN {channel}")).await.map_err(failed)?;
    Ok((session, channel, i32::try_from(pid).unwrap_or_default()))
}

/// Until the connection is lost.
async fn go(
    session: &Session,
    channel: &str,
    own: i32,
    wanted: &Notify,
    heard: &watch::Sender<u64>,
    mut telling: mpsc::UnboundedReceiver<Notification>,
) {
    loop {
        tokio::select! {
            () = wanted.notified() => {
                if session.run(&format!("NOTIFY {channel}")).await.is_err() {
                    return;
                }
            }
            told = telling.recv() => match told {
                // The driver has ended, and the connection with it.
                None => return,
                Some(notification) if notification.process_id() == own => {}
                Some(_) => heard.send_modify(|times| *times += 1),
            },
        }
    }
}
