//! Telling whoever asked for it that work is over: once, unless the manner says otherwise.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::counters::count;
use crate::http::post_json;
use crate::manner::Manner;
use crate::service::Inner;
use crate::work::{View, Work, WorkState};

const REPETITIONS: u32 = 3;
/// Tries of one callback, and the pause between them: whoever is not there by then has the poller.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Waits for the end of the work and tells it.
pub(crate) async fn tell_of_the_end(inner: Arc<Inner>, id: String) {
    let Some(work) = inner.work(&id) else { return };
    inner.clock.sleep_until(work.ends_at).await;
    // Asked again: it may have been stopped meanwhile, and then that was told.
    let Some(work) = inner.work(&id) else { return };
    if work.state(inner.clock.now_micros()) == WorkState::Cancelled {
        return;
    }
    let manner = work.script.manner;
    if [Manner::NeverEnds, Manner::CallbackNever, Manner::CallbackBeforeAnswer].contains(&manner) {
        return;
    }
    if manner == Manner::CallbackLate {
        tokio::time::sleep(inner.measures.callback_late).await;
    }
    let repetitions = if manner == Manner::CallbackRepeats { REPETITIONS } else { 1 };
    for _ in 0..repetitions {
        tell(&inner, &work, honest(&inner, &work)).await;
    }
    if manner == Manner::CallbackContradicts {
        tell(&inner, &work, honest(&inner, &work).contradicted()).await;
    }
}

/// Tells how the work stands now.
pub(crate) async fn tell_now(inner: &Inner, id: &str) {
    if let Some(work) = inner.work(id) {
        tell(inner, &work, honest(inner, &work)).await;
    }
}

async fn tell(inner: &Inner, work: &Work, view: View) {
    let Some(url) = &work.script.callback_url else { return };
    let mut body = view.body(&work.id);
    body["key"] = work.key.clone().map_or(Value::Null, Value::String);
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if matches!(post_json(url, &body).await, Ok(200..=299)) {
            count(&inner.counters.callbacks);
            return;
        }
        count(&inner.counters.failed_callbacks);
    }
}

fn honest(inner: &Inner, work: &Work) -> View {
    work.view(inner.clock.now_micros())
}
