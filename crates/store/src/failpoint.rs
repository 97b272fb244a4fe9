//! Named points on the way of a write where a drill ends the process. Without the feature `failpoints` there are none.
//!
//! `LONGHAUL_FAILPOINT=commit.after=3` ends the process when it comes to `commit.after` the third time, without a word and without
//! cleaning up: like kill -9, but at a place that was chosen.

/// A place to end at, if the environment says so.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn failpoint(_name: &'static str) {}

/// A place to end at, if the environment says so.
#[cfg(feature = "failpoints")]
pub fn failpoint(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static TIMES: AtomicU64 = AtomicU64::new(0);
    let chosen = CHOSEN.get_or_init(|| {
        let text = std::env::var("LONGHAUL_FAILPOINT").ok()?;
        let (name, time) = text.split_once('=')?;
        Some((name.to_owned(), time.parse().ok()?))
    });
    if let Some((chosen, time)) = chosen
        && chosen == name
        && TIMES.fetch_add(1, Ordering::SeqCst) + 1 == *time
    {
        std::process::abort();
    }
}
