//! Telling whoever asked for it that work is over: once, unless the manner says otherwise.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::signature::WebhookSecret;

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
    if manner == Manner::CallbackForged {
        let forger = WebhookSecret::of_bytes(b"somebody else's");
        tell(&inner, &work, honest(&inner, &work).contradicted(), "forged", Some(&forger)).await;
        return;
    }
    let secret = inner.callback_secret.as_ref();
    let repetitions = if manner == Manner::CallbackRepeats { REPETITIONS } else { 1 };
    for _ in 0..repetitions {
        tell(&inner, &work, honest(&inner, &work), "end", secret).await;
    }
    if manner == Manner::CallbackContradicts {
        tell(&inner, &work, honest(&inner, &work).contradicted(), "contradiction", secret).await;
    }
}

/// Tells how the work stands now.
pub(crate) async fn tell_now(inner: &Inner, id: &str) {
    if let Some(work) = inner.work(id) {
        tell(inner, &work, honest(inner, &work), "end", inner.callback_secret.as_ref()).await;
    }
}

/// Tells it, some times if need be; `name` makes the id of the message, the same for every repetition.
async fn tell(inner: &Inner, work: &Work, view: View, name: &str, secret: Option<&WebhookSecret>) {
    let Some(url) = &work.script.callback_url else { return };
    let mut body = view.body(&work.id);
    body["key"] = work.key.clone().map_or(Value::Null, Value::String);
    let body = body.to_string();
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let seconds = inner.clock.now_micros() / 1_000_000;
        let headers = secret.map(|secret| secret.headers(&format!("{}.{name}", work.id), seconds, &body));
        if matches!(post_json(url, &headers.unwrap_or_default(), &body).await, Ok(200..=299)) {
            count(&inner.counters.callbacks);
            return;
        }
        count(&inner.counters.failed_callbacks);
    }
}

fn honest(inner: &Inner, work: &Work) -> View {
    work.view(inner.clock.now_micros())
}
