//! Events as one kind of record.

use super::command::EventCommand;
use super::fact::EventFact;
use super::state::Event;
use super::{apply, decide, decide_new};
use crate::attention::{Attention, Retention};
use crate::kind::{Kind, Removal, Summary};
use crate::{BodyRef, Decision, EventId, Jitter, Misfold, Timestamp};

impl Kind for Event {
    type Id = EventId;
    type Command = EventCommand;
    type Fact = EventFact;

    const FACT_PREFIXES: &'static [&'static str] = &["event."];

    fn decide_new(id: &EventId, command: &EventCommand, _: Timestamp) -> Decision<EventFact> {
        decide_new(id, command)
    }

    fn decide(&self, command: &EventCommand, _: Timestamp) -> Decision<EventFact> {
        decide(self, command)
    }

    fn begin(id: &EventId, fact: &EventFact, at: Timestamp) -> Option<Self> {
        if let EventFact::Published(new) = fact { Some(Self::new(id.clone(), new, at)) } else { None }
    }

    fn apply(&mut self, fact: &EventFact, at: Timestamp) -> Result<(), Misfold> {
        apply(self, fact, at)
    }

    fn schedule(&self, retention: Retention) -> Attention {
        self.attention(retention)
    }

    fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<EventCommand> {
        Event::due_command(self, retention, now)
    }

    fn move_timers(by_micros: i64) -> EventCommand {
        EventCommand::MoveTimers { by_micros }
    }

    fn is_move(command: &EventCommand) -> bool {
        matches!(command, EventCommand::MoveTimers { .. })
    }

    fn moved_by(fact: &EventFact) -> Option<i64> {
        if let EventFact::TimersMoved { by_micros } = fact { Some(*by_micros) } else { None }
    }

    fn id(&self) -> &EventId {
        &self.id
    }

    fn set_id(&mut self, id: EventId) {
        self.id = id;
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn is_over(&self) -> bool {
        self.settled.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        vec![self.said.payload]
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.status().as_str(),
            name: &self.said.kind,
            circle: self.said.circle.as_deref(),
            key: self.said.dedupe_key.as_deref(),
            began_at: self.published_at,
            updated_at: self.updated_at,
        }
    }

    fn is_new_work(command: &EventCommand) -> bool {
        matches!(command, EventCommand::Publish(_))
    }

    fn needs_claim(command: &EventCommand) -> bool {
        matches!(command, EventCommand::Process(_))
    }

    fn fact_kind(fact: &EventFact) -> &'static str {
        match fact {
            EventFact::Published(_) => "event.published/1",
            EventFact::Settled(_) => "event.settled/1",
            EventFact::TimersMoved { .. } => "event.timers_moved/1",
            EventFact::Retired => "event.retired/1",
        }
    }

    fn removal(fact: &EventFact) -> Removal {
        if matches!(fact, EventFact::Retired) { Removal::Record } else { Removal::Nothing }
    }
}
