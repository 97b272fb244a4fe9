//! The requests of the scripted service, one function each.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Inner, promise_callback};
use crate::callback::tell_now;
use crate::counters::count;
use crate::http::{Answer, Handler, Request, Response};
use crate::ledger::{Ledger, Taken};
use crate::manner::{Manner, Occasion};
use crate::state::StateError;
use crate::work::{Asked, Cancel, Script, Work, WorkState};
use crate::zoo::{accepts, misanswer, told};

const MAX_KEY_BYTES: usize = 512;

/// What the server sees of the service.
pub(super) struct Door(pub(super) Arc<Inner>);

impl Handler for Door {
    async fn answer(&self, request: Request) -> Answer {
        let Self(inner) = self;
        match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["work"]) => {
                count(&inner.counters.starts);
                start(inner, &request).await
            }
            ("GET", ["work"]) => {
                count(&inner.counters.lookups);
                match request.query_value("key") {
                    Some(key) => inner.status(|ledger| ledger.by_key(key)),
                    None => Response::refusal(400, "key_missing", "ask with ?key=").into(),
                }
            }
            ("GET", ["work", id]) => {
                count(&inner.counters.statuses);
                inner.status(|ledger| ledger.by_id(id))
            }
            ("GET", ["work", id, "result"]) => {
                count(&inner.counters.results);
                inner.result(id)
            }
            ("POST", ["work", id, "cancel"]) => {
                count(&inner.counters.cancels);
                cancel(inner, id)
            }
            ("GET", ["ledger"]) => inner.ledger_page().into(),
            ("GET", ["zoo"]) => zoo_page().into(),
            (_, ["work", ..] | ["ledger" | "zoo"]) => {
                Response::refusal(405, "method_not_allowed", "this is not done to that").into()
            }
            _ => Response::refusal(404, "no_such_path", "there is /work, /ledger and /zoo").into(),
        }
    }

    fn connected(&self) {
        count(&self.0.counters.connections);
    }
}

impl Inner {
    fn status(&self, find: impl FnOnce(&mut Ledger) -> Option<&mut Work>) -> Answer {
        let now = self.clock.now_micros();
        let mut ledger = self.ledger();
        let Some(work) = find(&mut ledger) else { return unknown().into() };
        let turn = work.asked.statuses;
        let before = work.cancel;
        let view = told(work, now);
        let response = match &view {
            None => unknown(),
            Some(view) if view.state.is_over() => Response::json(200, &view.body(&work.id)),
            Some(view) => Response::json(200, &view.body(&work.id)).with("Retry-After", "1"),
        };
        let answer = misanswer(work, Occasion::Status, turn, response, &self.measures);
        let id = work.id.clone();
        let stopped = work.cancel == Cancel::Stopped && before != Cancel::Stopped;
        if stopped && let Err(error) = ledger.stop(&id, now) {
            return broken(&error).into();
        }
        answer
    }

    fn result(&self, id: &str) -> Answer {
        let now = self.clock.now_micros();
        let mut ledger = self.ledger();
        let Some(work) = ledger.by_id(id) else { return unknown().into() };
        let turn = work.asked.results;
        work.asked.results += 1;
        let view = work.view(now);
        let response = match view.result {
            Some(_) if work.script.manner == Manner::ResultOnSecondTry && turn == 0 => {
                Response::refusal(503, "result_not_ready", "ask again").with("Retry-After", "1")
            }
            Some(result) => Response::json(200, &result),
            None => Response::refusal(409, "no_result", "the work is not done"),
        };
        misanswer(work, Occasion::Result, turn, response, &self.measures)
    }

    fn ledger_page(&self) -> Response {
        let starts = self.ledger().starts();
        let starts: Vec<Value> = starts
            .into_iter()
            .map(|start| json!({"key": start.key, "id": start.id, "input": start.input}))
            .collect();
        Response::json(200, &json!({"starts": starts}))
    }
}

async fn start(inner: &Arc<Inner>, request: &Request) -> Answer {
    let work = match asked_for(inner, request) {
        Ok(work) => work,
        Err(refusal) => return refusal.into(),
    };
    let taken = {
        let mut ledger = inner.ledger();
        if let Err(busy) = accepts(&work, ledger.refusals(work.key.as_deref().unwrap_or_default())) {
            ledger.note_refusal(work.key.as_deref().unwrap_or_default());
            return busy;
        }
        ledger.take(work)
    };
    let id = match taken {
        Ok(Taken::New(id)) => {
            promise_callback(inner, &id);
            id
        }
        Ok(Taken::Known(id)) => id,
        Ok(Taken::Conflict) => {
            return Response::refusal(409, "key_reused", "this key belongs to another start").into();
        }
        Err(error) => return broken(&error).into(),
    };
    answer_start(inner, &id).await
}

async fn answer_start(inner: &Inner, id: &str) -> Answer {
    let (answer, tells_first) = {
        let mut ledger = inner.ledger();
        let Some(work) = ledger.by_id(id) else { return unknown().into() };
        let turn = work.asked.starts;
        work.asked.starts += 1;
        let response = Response::json(202, &json!({"id": id, "state": "queued"}))
            .with("Location", format!("/work/{id}"))
            .with("Retry-After", "1");
        let tells_first = work.script.manner == Manner::CallbackBeforeAnswer && turn == 0;
        (misanswer(work, Occasion::Start, turn, response, &inner.measures), tells_first)
    };
    if tells_first {
        tell_now(inner, id).await;
    }
    answer
}

fn asked_for(inner: &Inner, request: &Request) -> Result<Work, Response> {
    let key = request.header("idempotency-key").map(str::to_owned);
    if key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_KEY_BYTES) {
        return Err(Response::refusal(400, "key_invalid", "Idempotency-Key is empty or too long"));
    }
    let invalid = |message: String| Response::refusal(400, "start_invalid", &message);
    let input: Value = serde_json::from_slice(&request.body).map_err(|error| invalid(error.to_string()))?;
    // A list would be read as the fields in their order.
    if !input.is_object() {
        return Err(invalid("a start is an object".to_owned()));
    }
    let script: Script = serde_json::from_value(input.clone()).map_err(|error| invalid(error.to_string()))?;
    script.check().map_err(invalid)?;
    let now = inner.clock.now_micros();
    // Work that is told before its start is answered is over at once.
    let told_at_once = script.manner == Manner::CallbackBeforeAnswer;
    let takes = if told_at_once { 0 } else { script.duration_micros(inner.speed) };
    Ok(Work {
        // The ledger gives it one.
        id: String::new(),
        key,
        input,
        script,
        started_at: now,
        ends_at: now.saturating_add(takes),
        cancel: Cancel::None,
        interrupted: false,
        asked: Asked::default(),
    })
}

fn cancel(inner: &Arc<Inner>, id: &str) -> Answer {
    let now = inner.clock.now_micros();
    let mut ledger = inner.ledger();
    let Some(work) = ledger.by_id(id) else { return unknown().into() };
    let turn = work.asked.cancels;
    work.asked.cancels += 1;
    let manner = work.script.manner;
    let state = work.state(now);
    let mut stops = false;
    let response = if state == WorkState::Cancelled {
        cancelled(id)
    } else if state.is_over() && manner != Manner::NeverEnds {
        Response::refusal(409, "already_over", "the work is over")
    } else if manner == Manner::RefusesCancel {
        Response::refusal(409, "not_cancelable", "it cannot be stopped")
    } else if manner == Manner::CancelUnreachable {
        Response::refusal(500, "unreachable", "it cannot be stopped now")
    } else if manner == Manner::CancelsLate {
        if work.cancel == Cancel::None {
            work.cancel = Cancel::Until { statuses: work.asked.statuses + inner.measures.late_polls };
        }
        Response::json(202, &json!({"id": id, "state": "running"}))
    } else {
        stops = true;
        cancelled(id)
    };
    let answer = misanswer(work, Occasion::Cancel, turn, response, &inner.measures);
    if stops {
        if let Err(error) = ledger.stop(id, now) {
            return broken(&error).into();
        }
        let (inner_too, id) = (inner.clone(), id.to_owned());
        inner.callbacks.spawn(async move { tell_now(&inner_too, &id).await });
    }
    answer
}

fn cancelled(id: &str) -> Response {
    Response::json(200, &json!({"id": id, "state": "cancelled"}))
}

fn zoo_page() -> Response {
    let manners: Vec<Value> = Manner::ALL
        .into_iter()
        .map(Manner::sheet)
        .map(|sheet| json!({"name": sheet.name, "does": sheet.does, "outcome": sheet.outcome}))
        .collect();
    Response::json(200, &json!({"manners": manners}))
}

fn unknown() -> Response {
    Response::refusal(404, "unknown_work", "no such work is known here")
}

fn broken(error: &StateError) -> Response {
    Response::refusal(500, "state_broken", &error.to_string())
}
