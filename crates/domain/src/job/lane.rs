//! The lanes that jobs queue in. Work that names an executor queues for the daemon's own dispatcher; all other work is pulled, by
//! whoever asks for it in the circle that it belongs to.
//!
//! The name of a pulled lane holds the circle, so that nobody is ever handed what another circle has asked for.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::attempt::{Attempt, Trigger};
use super::spec::JobSpec;
use super::state::{Job, JobState};
use crate::{Refusal, Timestamp};

/// How the names of all pulled lanes begin. No executor and no lane that a caller names may begin so.
pub const PULLED: &str = "pull:";
/// The first name after them.
pub const AFTER_PULLED: &str = "pull;";

/// How the lanes of work begin that only one node can do. No executor and no lane that a caller names may begin so.
const PINNED: &str = "at:";

/// How no lane and no executor that a caller names may begin.
pub const RESERVED_LANES: [&str; 2] = [PULLED, PINNED];

/// What someone who pulls asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pull<'a> {
    /// Work for one peer, by its exact id.
    Assigned(&'a str),
    /// Work of a lane.
    Lane(&'a str),
    /// Work for anyone with a label.
    Label(&'a str),
    /// Work in a folder.
    Folder(&'a str),
    /// Work that names nobody.
    Anyone,
}

impl Pull<'_> {
    /// The lane in which such work of a circle queues.
    pub fn lane(self, circle: Option<&str>) -> String {
        let (kind, name) = match self {
            Self::Assigned(peer) => ("peer", peer),
            Self::Lane(lane) => ("lane", lane),
            Self::Label(label) => ("label", label),
            Self::Folder(path) => ("folder", path),
            Self::Anyone => ("any", ""),
        };
        pulled_lane(kind, name, circle)
    }
}

/// The lane in which events of a type wait for a claimant of their circle.
pub fn lane_of_events(kind: &str, circle: Option<&str>) -> String {
    pulled_lane("event", kind, circle)
}

fn pulled_lane(kind: &str, name: &str, circle: Option<&str>) -> String {
    let mut lane = format!("{PULLED}{kind}:");
    // The length first: no circle and name read like another circle and name.
    match circle {
        Some(circle) => {
            let _ = write!(lane, "{}:{circle}:", circle.len());
        }
        None => lane.push_str("-:"),
    }
    lane.push_str(name);
    lane
}

/// Whether two lanes are pulled for the same work in two circles.
pub fn differ_in_circle(one: &str, other: &str) -> bool {
    one != other && parts(one).is_some_and(|these| parts(other).is_some_and(|those| these == those))
}

/// The kind and the name of a pulled lane, without its circle.
fn parts(lane: &str) -> Option<(&str, &str)> {
    let (kind, rest) = lane.strip_prefix(PULLED)?.split_once(':')?;
    let (length, rest) = rest.split_once(':')?;
    if length == "-" {
        return Some((kind, rest));
    }
    let circle: usize = length.parse().ok()?;
    Some((kind, rest.get(circle..)?.strip_prefix(':')?))
}

/// Whether a lane is pulled from, and not dispatched.
pub fn is_pulled(lane: &str) -> bool {
    lane.starts_with(PULLED)
}

/// The node that alone takes from a lane, and the lane that it would be anywhere else; none if every node may take from it.
pub fn pinned_to(lane: &str) -> Option<(&str, &str)> {
    lane.strip_prefix(PINNED)?.split_once(':')
}

/// The lane that it would be if it were for any node. Its limit is that of all the lanes which come to the same.
pub fn anywhere(lane: &str) -> &str {
    pinned_to(lane).map_or(lane, |(_, lane)| lane)
}

/// The lane of what only this node can do, of the work that queues in a lane anywhere else.
pub fn pinned(node: &str, lane: &str) -> String {
    format!("{PINNED}{node}:{lane}")
}

/// Whether a name is none that a caller may give to a lane or an executor.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED_LANES.iter().any(|prefix| name.starts_with(prefix))
}

impl JobSpec {
    /// The lane that it queues in: its executor's own or the one that it names; else it is pulled. A step that begins with files of
    /// one node queues for that node.
    pub fn lane(&self) -> Cow<'_, str> {
        let lane = match (&self.executor, &self.lane) {
            (Some(_), Some(lane)) => lane,
            (Some(executor), None) => executor,
            (None, _) => return Cow::Owned(self.pull().lane(self.circle.as_deref())),
        };
        match self.node() {
            Some(node) => Cow::Owned(pinned(node, lane)),
            None => Cow::Borrowed(lane),
        }
    }

    /// The node that has the files it begins with, if no other can do it.
    pub fn node(&self) -> Option<&str> {
        self.step.as_ref().and_then(|step| step.node.as_deref())
    }

    /// Who may pull it: the peer that it is assigned to, else whoever asks for its lane, its label or its folder, else anyone.
    pub fn pull(&self) -> Pull<'_> {
        match (&self.assigned_peer_id, &self.lane, &self.label, &self.path) {
            (Some(peer), _, _, _) => Pull::Assigned(peer),
            (None, Some(lane), _, _) => Pull::Lane(lane),
            (None, None, Some(label), _) => Pull::Label(label),
            (None, None, None, Some(path)) => Pull::Folder(path),
            (None, None, None, None) => Pull::Anyone,
        }
    }
}

impl Job {
    /// Whether another attempt that someone asks for waits for whoever pulls: it names them, or one of them had it, or it is tried again.
    /// Nobody is handed what names nobody because it is run: that says that its target is missing, and a retry takes it back.
    pub fn goes_back_to_pullers(&self, trigger: Trigger) -> bool {
        let had_it = |attempt: &Attempt| attempt.owner.outside_name().is_some();
        let one_had_it = self.last_attempt().is_some_and(had_it);
        let named = self.spec.pull() != Pull::Anyone;
        // What was never begun, as a directive that was rejected, is not handed to whoever comes by.
        let tried_again = trigger == Trigger::Retry && !self.attempts.is_empty();
        self.spec.executor.is_none() && (tried_again || one_had_it || named)
    }

    /// Whether it waits in the queue for whoever pulls it, and names nobody: a run would say that its target is missing.
    pub fn waits_for_anyone(&self) -> bool {
        let queued = matches!(self.state, JobState::Queued { .. });
        queued && self.spec.executor.is_none() && self.spec.pull() == Pull::Anyone
    }

    /// Whether it waits for someone to pull it.
    pub fn may_be_pulled(&self, now: Timestamp) -> Result<(), Refusal> {
        let (JobState::Queued { due_at }, None) = (&self.state, &self.spec.executor) else {
            return Err(Refusal::NotRunnable { state: self.state.name() });
        };
        if *due_at > now {
            return Err(Refusal::NotDue { due_at: *due_at });
        }
        self.hold().map_or(Ok(()), |hold| Err(hold.refusal()))
    }

    /// Whether what it waited for has come, and someone who pulls goes on with it: each hand-out is an attempt of its own.
    pub(in crate::job) fn goes_on_with_another(&self) -> bool {
        self.resume_pending && self.spec.executor.is_none()
    }

    /// When the current attempt has taken too long, if someone outside makes it and nobody has asked to stop.
    pub(super) fn attempt_ends_at(&self) -> Option<Timestamp> {
        let (None, None, Some(seconds)) = (&self.spec.executor, &self.cancel, self.spec.timeout_seconds)
        else {
            return None;
        };
        let attempt = self.last_attempt()?;
        Some(attempt.started_at.plus_micros(attempt.moved_micros).plus_seconds(seconds))
    }
}
