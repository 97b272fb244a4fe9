//! What a fact leaves behind on an event.

use super::fact::EventFact;
use super::state::{Event, Settled};
use crate::{Misfold, Timestamp};

/// Folds one fact, recorded at this time, into the event.
pub fn apply(event: &mut Event, fact: &EventFact, at: Timestamp) -> Result<(), Misfold> {
    match fact {
        EventFact::Published(_) => return Err(Misfold("the event was published twice")),
        EventFact::Settled(settlement) => {
            event.settled = Some(Settled { at, settlement: settlement.clone() });
        }
        EventFact::TimersMoved { .. } | EventFact::Retired => {}
    }
    event.updated_at = at;
    Ok(())
}
