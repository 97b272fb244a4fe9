//! The daemon's side of a supervised command: hears the reports, passes on the order to stop, and makes sure of the end.
//!
//! Returns only when the tree is over. A supervisor that goes without its last report was killed: then what it left is found and ended.
//! One whose command ended by itself is kept for another.

use std::time::Duration;

use domain::AttemptId;
use domain::job::CancelRecipient;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::watch;

use super::report::{Exit, Report, is_of_program};
use super::supervisor::KILL_LIMIT;
use super::supervisors::Supervisor;
use super::sweep::sweep_attempt;
use super::{ProcessHost, ProcessSettings};
use engine::{Link, Stop};

/// All reports of one supervisor together.
const MAX_REPORT_BYTES: u64 = 65_536;
/// Beyond what a supervisor may need to end its tree.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(Exit),
    NotStarted {
        errno: i32,
        message: String,
    },
    /// We were told to stop it before it ended.
    Stopped(Stop),
    /// It had longer than the executor allows.
    TimeOver,
    /// Its supervisor was killed before the command ended.
    SupervisorLost,
}

/// What the supervisor said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWord {
    TreeEnded,
    Lost,
}

/// Follows a command to the end of its tree, and says then that all is over.
pub(super) async fn follow(
    host: &ProcessHost,
    supervisor: Supervisor,
    settings: &ProcessSettings,
    attempt_id: &AttemptId,
    mut link: Link,
    over: watch::Sender<bool>,
) -> Ending {
    let Supervisor { mut process, socket } = supervisor;
    let (reader, writer) = socket.into_split();
    let mut lines = BufReader::new(reader.take(MAX_REPORT_BYTES)).lines();
    let mut open = Some(writer);
    let mut ending = None;
    let mut stopping = false;
    let time_over = sleep_optional(settings.time_limit);
    let patience = sleep_optional(None);
    tokio::pin!(time_over, patience);
    let said = loop {
        let ends_by = settings.grace + KILL_LIMIT + PATIENCE;
        tokio::select! {
            line = lines.next_line() => match line.ok().flatten().map(|line| Report::parse(&line)) {
                Some(Ok(Report::TreeEnded { left: 0 })) => break LastWord::TreeEnded,
                Some(Ok(Report::TreeEnded { left })) => {
                    tracing::warn!(attempt = %attempt_id, left, "processes do not die; they are looked for again");
                    break LastWord::Lost;
                }
                Some(Ok(Report::Stopping { .. })) => {
                    stopping = true;
                    if ending == Some(Ending::Stopped(Stop::Cancelled)) {
                        link.sent_cancel_to(CancelRecipient::Process);
                    }
                }
                Some(Ok(Report::Exited(exit))) => {
                    // It had ended by itself before anyone could stop it, whatever we had asked for by then.
                    if !stopping {
                        ending = Some(Ending::Exited(exit));
                    }
                    ending.get_or_insert(Ending::Exited(exit));
                    patience.set(sleep_optional(Some(ends_by)));
                }
                Some(Ok(Report::NotStarted { errno, message })) => {
                    ending.get_or_insert(Ending::NotStarted { errno, message });
                }
                Some(Err(_)) | None => break LastWord::Lost,
            },
            stop = link.must_stop(), if ending.is_none() => {
                ending = Some(Ending::Stopped(stop));
                open = None;
                patience.set(sleep_optional(Some(ends_by)));
            }
            () = &mut time_over, if ending.is_none() => {
                ending = Some(Ending::TimeOver);
                open = None;
                patience.set(sleep_optional(Some(ends_by)));
            }
            () = &mut patience => {
                let _ = process.start_kill();
                break LastWord::Lost;
            }
        }
    };
    if said == LastWord::Lost {
        // Not waited for yet, so that its id, which is its session's too, is nobody else's.
        let session = process.id().and_then(|id| i32::try_from(id).ok());
        let (data_dir, attempt_id) = (host.data_dir.clone(), attempt_id.clone());
        let swept = tokio::task::spawn_blocking(move || sweep_attempt(&data_dir, &attempt_id, session)).await;
        tracing::warn!(
            processes = swept.unwrap_or_default(),
            "a supervisor was lost; its processes were ended"
        );
    }
    match open {
        Some(writer) if said == LastWord::TreeEnded && !stopping && !may_fail_again(ending.as_ref()) => {
            let reader = lines.into_inner().into_inner().into_inner();
            if let Ok(socket) = reader.reunite(writer) {
                host.supervisors.keep(Supervisor { process, socket }, host, settings);
            }
        }
        open => {
            drop(open);
            let _ = process.wait().await;
        }
    }
    over.send_replace(true);
    ending.unwrap_or(Ending::SupervisorLost)
}

/// Then the supervisor ends: its sandbox may be what failed.
fn may_fail_again(ending: Option<&Ending>) -> bool {
    matches!(ending, Some(Ending::NotStarted { errno, .. }) if !is_of_program(*errno))
}

pub(super) async fn sleep_optional(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
