//! Who may do what: each permission names the roles that have it, and a caller its relation to a job.

use api::{ProblemCode, Role};
use domain::job::{Job, JobSpec};
use engine::Approval;

use crate::Result;
use crate::access::authenticate::Principal;
use crate::operations::Operation;

/// What an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// A token whose role has this permission.
    Needs(Permission),
}

/// What a role may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// See jobs and their facts.
    Read,
    /// Create jobs.
    Create,
    /// Report on jobs.
    Report,
    /// Ask to stop jobs.
    Cancel,
    /// Run and retry jobs.
    Run,
    /// Answer jobs that wait.
    Answer,
    /// Delete the bodies of jobs that are over.
    Purge,
    /// Vouch for what runs outside.
    Settle,
    /// See figures that span circles.
    ReadFigures,
    /// Tell nodes to take work or not, and to read their pipelines anew.
    ManageNodes,
    /// Make, see and revoke tokens.
    ManageTokens,
    /// Set the store's time right.
    ManageClock,
}

/// The scope that lets a token use the executor `command`.
pub const EXEC_SCOPE: &str = "exec";
/// Every scope that a token may have.
pub(crate) const SCOPES: [&str; 1] = [EXEC_SCOPE];
/// The executor that needs it.
pub const COMMAND_EXECUTOR: &str = "command";

/// Whether a role has a permission.
pub fn allows(role: Role, permission: Permission) -> bool {
    let (manages, works) = (
        matches!(role, Role::Admin | Role::Operator),
        matches!(role, Role::Admin | Role::Operator | Role::Peer | Role::Agent),
    );
    match permission {
        Permission::Read => true,
        Permission::Create
        | Permission::Report
        | Permission::Cancel
        | Permission::Run
        | Permission::Answer => works,
        Permission::Purge | Permission::Settle | Permission::ManageNodes => manages,
        Permission::ReadFigures => manages || role == Role::Viewer,
        Permission::ManageTokens | Permission::ManageClock => role == Role::Admin,
    }
}

/// Refuses a caller whose token does not allow the operation.
pub(crate) fn check(principal: &Principal, operation: &Operation, permission: Permission) -> Result<()> {
    if principal.only.is_some() && !operation.for_attempts {
        return Err(
            ProblemCode::Forbidden.because("the token is for one attempt of one job, and for nothing else")
        );
    }
    if !allows(principal.role, permission) {
        return Err(ProblemCode::Forbidden
            .because(format!("a token with the role {} may not do this", principal.role.as_str())));
    }
    let spans_circles = matches!(
        permission,
        Permission::ReadFigures
            | Permission::ManageNodes
            | Permission::ManageTokens
            | Permission::ManageClock
    );
    if spans_circles && principal.circle.is_some() {
        return Err(ProblemCode::Forbidden.because("a token that is bound to a circle may not do this"));
    }
    Ok(())
}

/// Whether a caller sees this job.
pub(crate) fn sees_job(principal: &Principal, job: &Job) -> bool {
    match &principal.only {
        Some(only) => *only == job.id,
        None => sees(principal, job.spec.circle.as_deref()) && is_let_in(principal, job),
    }
}

/// A private job is seen by who runs the daemon, by the peers that it names, and by whoever its attempt was handed to.
fn is_let_in(principal: &Principal, job: &Job) -> bool {
    let spec = &job.spec;
    if !spec.is_private() || sees_private(principal) {
        return true;
    }
    names(spec, principal.peer_id.as_deref())
        || job.last_attempt().is_some_and(|attempt| attempt.is_held_by(&principal.reporter()))
}

/// Whether a job names this peer.
fn names(spec: &JobSpec, me: Option<&str>) -> bool {
    let peers = [&spec.assigned_peer_id, &spec.owner_peer_id, &spec.created_by_peer_id];
    me.is_some() && peers.into_iter().any(|peer| peer.as_deref() == me)
}

/// Whether a caller sees the private jobs of its circle, whoever they name.
pub(crate) fn sees_private(principal: &Principal) -> bool {
    matches!(principal.role, Role::Admin | Role::Operator) && principal.only.is_none()
}

/// Whether a caller sees the jobs of a circle. A token without a circle sees all, but a peer's or an agent's then sees none.
pub(crate) fn sees(principal: &Principal, circle: Option<&str>) -> bool {
    match (&principal.circle, principal.role) {
        (Some(own), _) => circle == Some(own.as_str()),
        (None, Role::Admin | Role::Operator | Role::Viewer) => true,
        (None, Role::Peer | Role::Agent) => false,
    }
}

/// Whether a caller sees what is of any circle.
pub(crate) fn sees_every_circle(principal: &Principal) -> bool {
    principal.circle.is_none() && sees(principal, None)
}

/// Whether a caller that sees a job may change it. `claimed` is who the caller says it is; a bound token knows better.
pub(crate) fn check_steering(principal: &Principal, job: &Job, claimed: Option<&str>) -> Result<()> {
    match principal.role {
        Role::Admin | Role::Operator => return Ok(()),
        Role::Peer | Role::Agent => {}
        Role::Viewer => return Err(ProblemCode::Forbidden.because("a viewer only reads")),
    }
    let spec = &job.spec;
    if principal.only.as_ref() == Some(&job.id) {
        return Ok(());
    }
    if names(spec, principal.peer_id.as_deref().or(claimed)) || spec.assigned_peer_id.is_none() {
        return Ok(());
    }
    Err(ProblemCode::Forbidden.because("the job is assigned to another peer"))
}

/// Refuses an answer to work that an operator has to approve, unless an operator gives it.
pub(crate) fn check_approval(principal: &Principal, approval: Approval) -> Result<()> {
    match (approval, principal.role) {
        (Approval::NotNeeded, _) | (Approval::Operator, Role::Admin | Role::Operator) => Ok(()),
        (Approval::Operator, Role::Peer | Role::Agent | Role::Viewer) => {
            Err(ProblemCode::Forbidden.because("only an operator approves this"))
        }
    }
}

/// Refuses an executor that the token may not use.
pub(crate) fn check_executor(principal: &Principal, executor: Option<&str>) -> Result<()> {
    if executor != Some(COMMAND_EXECUTOR) || principal.scopes.iter().any(|scope| scope == EXEC_SCOPE) {
        return Ok(());
    }
    Err(ProblemCode::ScopeRequired
        .because("the executor \"command\" is only for tokens with the scope \"exec\""))
}

/// The circle that a new job belongs to: the token's own, if it has one.
pub(crate) fn circle_of_new(principal: &Principal, asked: Option<String>) -> Result<Option<String>> {
    let circle = match (&principal.circle, asked) {
        (Some(own), Some(asked)) if *own != asked => None,
        (Some(own), _) => return Ok(Some(own.clone())),
        (None, asked) => Some(asked),
    };
    match circle {
        Some(circle) if sees(principal, circle.as_deref()) => Ok(circle),
        Some(_) | None => Err(ProblemCode::CircleForbidden
            .because("the token creates jobs only in its own circle; leave `circle` out")),
    }
}

/// The circle of a list that is asked for within what the caller sees, `Some(None)` for all; none if that is nothing.
#[allow(clippy::option_option, reason = "nothing, all, and one circle are three things")]
pub(crate) fn circle_of_list(principal: &Principal, named: Option<String>) -> Option<Option<String>> {
    let circle = match (&principal.circle, named) {
        (Some(own), Some(named)) if *own != named => return None,
        (Some(own), _) => Some(own.clone()),
        (None, named) => named,
    };
    sees(principal, circle.as_deref()).then_some(circle)
}
