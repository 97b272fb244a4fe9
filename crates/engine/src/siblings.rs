//! Reports of siblings: jobs of one run that end on this node at once. Every end changes the run, so that of many at once all but one would
//! conflict and be decided anew. Here one commits at a time for each run, and takes along in its commit what has come meanwhile.
//!
//! Riding along is an offer: where the combined commit fails, for whatever reason, every report is given alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::{Consequence, RecordId};
use tokio::sync::oneshot;

use crate::engine::Evidence;
use crate::locked::Locked;
use crate::{Engine, EngineError, Order};

/// Reports that ride in one commit, and what is ordered with them.
const MAX_ORDERS: usize = 24;
/// Reports that wait for one turn: whoever comes then goes alone, so that nobody waits past a lease.
const MAX_WAITING: usize = 24;

/// The reports that wait on one node, by the record that their ends are told to.
#[derive(Default)]
pub(crate) struct Siblings {
    /// There is an entry while somebody has the turn.
    waiting: Mutex<BTreeMap<RecordId, Vec<Waiting>>>,
}

/// A report that waits for the one before it.
struct Waiting {
    order: Order,
    called: oneshot::Sender<Call>,
}

/// What a report that waited hears. If it hears nothing it is given alone.
enum Call {
    /// It was in another's commit.
    Committed,
    /// It has the turn, and takes these along.
    Turn(Turn, Vec<Waiting>),
}

/// The turn to commit for one parent. Whoever is done, or gone, hands it on.
struct Turn {
    siblings: Arc<Siblings>,
    parent: RecordId,
}

impl Engine {
    /// Executes the report of a job whose end is told to this parent, together with others that wait for the same.
    pub(crate) async fn report_to(&self, parent: RecordId, order: Order) -> Result<(), EngineError> {
        let alone = |order: Order| async move { self.execute(order).await.map(|_| ()) };
        if !may_ride(&order) {
            return alone(order).await;
        }
        let (_turn, beside) = match self.siblings().take_turn(parent, &order) {
            Ok(turn) => (turn, Vec::new()),
            Err(None) => return alone(order).await,
            Err(Some(call)) => match call.await {
                Ok(Call::Committed) => return Ok(()),
                Ok(Call::Turn(turn, beside)) => (turn, beside),
                Err(_) => return alone(order).await,
            },
        };
        if beside.is_empty() {
            return alone(order).await;
        }
        let combined = beside.iter().fold(order.clone(), |combined, one| combined.beside(&one.order));
        match self.execute_with_evidence(combined).await {
            (Ok(_), _) => {
                for one in beside {
                    // Whoever has gone needs no word.
                    let _ = one.called.send(Call::Committed);
                }
                Ok(())
            }
            (Err(refused), Evidence::Stored) => Err(refused),
            (Err(_), Evidence::None) => {
                drop(beside);
                alone(order).await
            }
        }
    }
}

impl Siblings {
    /// The turn, or where it is called out; neither if too many wait.
    fn take_turn(
        self: &Arc<Self>,
        parent: RecordId,
        order: &Order,
    ) -> Result<Turn, Option<oneshot::Receiver<Call>>> {
        let mut all = self.waiting.locked();
        let Some(waiting) = all.get_mut(&parent) else {
            all.insert(parent.clone(), Vec::new());
            return Ok(Turn { siblings: self.clone(), parent });
        };
        if waiting.len() >= MAX_WAITING {
            return Err(None);
        }
        let (called, call) = oneshot::channel();
        waiting.push(Waiting { order: order.clone(), called });
        Err(Some(call))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.siblings.waiting.locked();
        let Some(waiting) = all.get_mut(&self.parent) else { return };
        waiting.retain(|one| !one.called.is_closed());
        if waiting.is_empty() {
            all.remove(&self.parent);
            return;
        }
        let mut room = MAX_ORDERS;
        let fit = waiting.iter().take_while(|one| {
            let orders = 1 + one.order.also.len();
            let fits = orders <= room;
            room = room.saturating_sub(orders);
            fits
        });
        let fit = fit.count().max(1);
        let mut beside: Vec<Waiting> = waiting.drain(..fit).collect();
        drop(all);
        let first = beside.remove(0);
        let turn = Self { siblings: self.siblings.clone(), parent: self.parent.clone() };
        // One that has gone meanwhile hands the turn on, and what it would have taken along goes alone.
        let _ = first.called.send(Call::Turn(turn, beside));
    }
}

/// Whether a report may be in a commit of others: what belongs to a whole commit stays with its own.
fn may_ride(order: &Order) -> bool {
    order.fence.is_some()
        && order.keys.is_empty()
        && order.plugin_state.is_none()
        && order.result_of.is_none()
        && order.causation_id.is_none()
        && order.correlation_id.is_none()
}

impl Order {
    /// The same order with another in its commit, decided when all of this one is.
    fn beside(mut self, other: &Self) -> Self {
        let commands = [&other.command].into_iter().chain(&other.then).cloned();
        self.also.extend(commands.map(|command| Consequence { record: other.record.clone(), command }));
        self.also.extend(other.also.iter().cloned());
        self.bodies.extend(other.bodies.iter().cloned());
        self.fences.extend(other.fence.clone().map(|fence| (other.record.clone(), fence)));
        self
    }
}
