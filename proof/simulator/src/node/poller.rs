//! The poller of one due operation: it asks the service, or lets time end it, in one commit under its claim.

use domain::job::CancelAnswer;
use domain::operation::{Operation, OperationCommand, Poll, PollAnswer, PollError};
use domain::{Jitter, OperationId, Record, RecordId};
use engine::{EngineError, Order, OrderBody};
use store::Taken;

use crate::connector::Connector;
use crate::counters::Sometimes;
use crate::heap::SECOND;
use crate::node::Node;

/// How often an answer whose recording is unknown is recorded again.
const MAX_RECORDINGS: usize = 4;

/// Looks after one operation that was taken because it is due.
pub async fn poll(node: Node, taken: Taken) {
    let RecordId::Operation(id) = &taken.id else { return };
    let Ok(Some(loaded)) = node.store().load(&taken.id).await else { return };
    let Record::Operation(operation) = &*loaded.record else { return };
    let command = match due(&node, operation) {
        Due::ByTime => {
            let _ = node.attend(&taken).await;
            return;
        }
        Due::Cancel => ask_to_stop(&node, id).await,
        Due::Poll => ask(&node, id).await,
    };
    let order = Order::new(id.clone(), command, node.actor.clone()).under(taken.claim.fence());
    record(&node, with_result(&node, order, id)).await;
}

/// A service calls back by itself: the same answer, under nobody's claim.
pub async fn call_back(node: &Node, id: OperationId, answer: PollAnswer) {
    let command = OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: jitter(node) }));
    let order = Order::new(id.clone(), command, node.actor.clone());
    record(node, with_result(node, order, &id)).await;
}

enum Due {
    ByTime,
    Cancel,
    Poll,
}

fn due(node: &Node, operation: &Operation) -> Due {
    let now = node.now();
    let retention = node.sim.with(|world| world.setting.retention);
    let stop_due =
        operation.cancel.as_ref().and_then(|cancel| cancel.next_try_at).is_some_and(|at| at <= now);
    let may_run_on = operation.ended.is_none() || operation.orphan().is_some();
    if operation.due_command(retention, Jitter::default, now).is_some() {
        Due::ByTime
    } else if stop_due && may_run_on {
        Due::Cancel
    } else {
        let ask_at =
            if operation.ended.is_some() { operation.late_poll_at() } else { Some(operation.next_poll_at) };
        if ask_at.is_some_and(|at| at <= now) { Due::Poll } else { Due::ByTime }
    }
}

async fn ask(node: &Node, id: &OperationId) -> OperationCommand {
    node.sim.doze(SECOND / 50, 5 * SECOND).await;
    let answer = node.sim.with(|world| {
        let now = world.heap.now();
        let rng = &mut world.rng;
        world.connectors.get_mut(id).map(|connector| connector.poll(now, rng))
    });
    let failed = |error| PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent };
    let answer = match answer {
        Some(Ok(answer)) => answer,
        Some(Err(error)) => failed(error),
        None => failed(PollError { code: "no_such_service".to_owned(), ..PollError::default() }),
    };
    OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: jitter(node) }))
}

async fn ask_to_stop(node: &Node, id: &OperationId) -> OperationCommand {
    node.sim.with(|world| {
        if let Some(Record::Operation(operation)) = world.check.record(&id.clone().into()) {
            let job = operation.link.job_id.clone();
            world.check.sends_cancel(job.into());
        }
    });
    node.sim.doze(SECOND / 50, 5 * SECOND).await;
    let answer = node.sim.with(|world| {
        let rng = &mut world.rng;
        world.connectors.get_mut(id).map_or(CancelAnswer::Unreachable, |connector| connector.cancel(rng))
    });
    OperationCommand::RecordCancelAnswer { answer, told: None, said: None, jitter: jitter(node) }
}

/// The result's bytes go with the answer that brings it, to the operation and to its job.
fn with_result(node: &Node, mut order: Order, id: &OperationId) -> Order {
    let completed = matches!(&order.command, domain::Command::Operation(OperationCommand::RecordPoll(poll))
        if matches!(poll.answer, PollAnswer::Completed(_)));
    if completed {
        node.sim.with(|world| {
            let Some((job, body)) = world.connectors.get(id).map(Connector::result) else { return };
            for record in [job.clone().into(), id.clone().into()] {
                order.bodies.push(OrderBody { record, body: body.clone() });
            }
        });
    }
    order
}

async fn record(node: &Node, order: Order) {
    let completes = !order.bodies.is_empty();
    for _ in 0..MAX_RECORDINGS {
        match node.order(order.clone()).await {
            Ok(outcome) => {
                let expired = matches!(&**outcome.record(), Record::Operation(operation)
                    if operation.status() == domain::operation::OperationStatus::Expired);
                if completes && expired {
                    node.sim.with(|world| world.counters.saw(Sometimes::ExpiryRacingCompletion));
                }
                return;
            }
            Err(EngineError::Refused(_) | EngineError::KeyTaken(_)) => return,
            Err(EngineError::Contended | EngineError::TooManyConsequences | EngineError::Store(_)) => {
                node.sim.doze(SECOND / 10, 3 * SECOND).await;
            }
        }
    }
}

fn jitter(node: &Node) -> Jitter {
    node.ids().jitter()
}
