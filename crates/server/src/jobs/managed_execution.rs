//! How a new job shall be carried out: target, schedule, delivery, scope and continuity, the caller's own with the fields of the
//! request over them. The order of the checks is part of the contract.

use api::CreateJob;
use domain::Timestamp;
use engine::accept::ProcessScope;

use super::new_job::{object, one_of, time};
use crate::Result;
use crate::problem::at_field;
use crate::render::RawObject;

/// The part of an execution that we understand.
pub(super) struct ManagedExecution {
    /// The whole as JSON.
    pub(super) text: String,
    pub(super) due_at: Option<Timestamp>,
    pub(super) path: Option<String>,
    pub(super) backend: Option<String>,
    /// Which process does it, if nobody is assigned and it names a folder.
    pub(super) scope: Option<ProcessScope>,
}

/// Puts it together. What it takes is taken out of the caller's execution; the rest stays with the request.
pub(super) fn managed_execution(create: &CreateJob, callers: &mut RawObject<'_>) -> Result<ManagedExecution> {
    let in_execution = |key: &'static str| ["body", "request", "execution", key];
    let (target, schedule, delivery) =
        (callers.remove("target"), callers.remove("schedule"), callers.remove("delivery"));
    let mut target = object(target.as_deref(), &in_execution("target"))?;
    let mut schedule = object(schedule.as_deref(), &in_execution("schedule"))?;
    let mut delivery = object(delivery.as_deref(), &in_execution("delivery"))?;
    fill_target(create, &mut target);
    if let Some(due_at) = &create.due_at {
        schedule.set("due_at", due_at);
    }
    let due_at = schedule.text("due_at");
    let due_at = time(&["body", "request", "execution", "schedule", "due_at"], due_at.as_deref())?;
    if delivery.get("kind").is_none() {
        delivery.set("kind", "ask");
    }
    if let Some(surface) = &create.result_surface {
        delivery.set("result_surface", surface);
    }
    let scope = process_scope(create, callers, &target)?;
    let has_peer = target.get("assigned_peer_id").is_some();
    let continuity = continuity(create, callers, scope, has_peer)?;

    let (path, backend) = (target.text("path"), target.text("backend"));
    let of_its_own = scope.filter(|_| create.assigned_peer_id.is_none() && path.is_some());
    let of_its_own = of_its_own.map(|scope| match scope {
        "persistent" => ProcessScope::Persistent,
        _ => ProcessScope::PerFire,
    });
    let mut managed = RawObject::default();
    managed.set("target", &target);
    managed.set("schedule", &schedule);
    managed.set("delivery", &delivery);
    if let Some(scope) = scope {
        managed.set("process_scope", scope);
    }
    if let Some(continuity) = continuity {
        managed.set("continuity", continuity);
    }
    Ok(ManagedExecution { text: managed.to_text(), due_at, path, backend, scope: of_its_own })
}

fn fill_target(create: &CreateJob, target: &mut RawObject<'_>) {
    for (key, value) in [
        ("path", &create.path),
        ("backend", &create.backend),
        ("profile", &create.profile),
        ("assigned_peer_id", &create.assigned_peer_id),
        ("executor", &create.executor),
    ] {
        if let Some(value) = value {
            target.set(key, value);
        }
    }
}

/// As asked for; work that starts a process of its own has it for one fire.
fn process_scope(
    create: &CreateJob,
    callers: &mut RawObject<'_>,
    target: &RawObject<'_>,
) -> Result<Option<&'static str>> {
    let asked = create.process_scope.clone().or_else(|| callers.text("process_scope"));
    callers.remove("process_scope");
    let spawns =
        create.assigned_peer_id.is_none() && target.get("path").is_some() && target.get("backend").is_some();
    match asked.as_deref() {
        Some("per_fire" | "per-fire") => Ok(Some("per_fire")),
        Some("persistent") => Ok(Some("persistent")),
        Some(_) => Err(one_of("process_scope", "per_fire, persistent")),
        None => Ok(spawns.then_some("per_fire")),
    }
}

fn continuity(
    create: &CreateJob,
    callers: &mut RawObject<'_>,
    scope: Option<&str>,
    has_peer: bool,
) -> Result<Option<&'static str>> {
    let asked = create.continuity.clone().or_else(|| callers.text("continuity"));
    callers.remove("continuity");
    match asked.as_deref() {
        // The session lives as long as the process: that of a peer, or one that outlives the job.
        Some("resume") if has_peer || scope == Some("persistent") => Ok(Some("resume")),
        Some("resume") => {
            let told = "the daemon keeps no session of a process that ends with its job: send process_scope persistent or an assigned_peer_id with continuity resume, or continuity fresh";
            Err(at_field("continuity", "continuity_unavailable", told))
        }
        // A command that stays is given job after job, and so is a peer that works in the folder already.
        Some("fresh") if scope == Some("persistent") && !has_peer => {
            let told = "a persistent process goes on with what it had: send process_scope per_fire with continuity fresh, or continuity resume";
            Err(at_field("continuity", "continuity_unavailable", told))
        }
        Some("fresh") => Ok(Some("fresh")),
        Some(_) => Err(one_of("continuity", "resume, fresh")),
        None => Ok((scope == Some("per_fire")).then_some("fresh")),
    }
}
