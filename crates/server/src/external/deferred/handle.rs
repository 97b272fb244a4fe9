//! The handle: `deferred:<kind>:<hex>` names the job `work-<hex>`. Under an idempotency key the same call has the same handle, whoever
//! answers it; without one it is new.

use domain::JobId;
use domain::job::Job;

use crate::access::authenticate::Principal;

/// What a job that was invoked says of where it came from.
pub(super) const SOURCE_KIND: &str = "invoke";
/// How the source of a job is named whose caller took a handle.
pub(super) const ASYNC: &str = "async";
/// And of one whose caller waits.
pub(super) const SYNC: &str = "sync";
/// What a job says that a directive asked for, and whose caller took a handle. Its source is the directive.
pub(crate) const DIRECTIVE_ASYNC: &str = "directive-async";
/// And of one whose caller waits.
pub(crate) const DIRECTIVE_SYNC: &str = "directive-sync";
/// And of one that was rejected.
pub(crate) const DIRECTIVE_REJECTED: &str = "directive-rejected";
/// The kind of every operation that a directive began.
pub(crate) const DIRECTIVE_KIND: &str = "sensorium.directive.invoke";
/// The words above, which nobody else's job may have as its source.
pub(crate) const OWN_SOURCES: [&str; 4] = [SOURCE_KIND, DIRECTIVE_ASYNC, DIRECTIVE_SYNC, DIRECTIVE_REJECTED];
/// Hex digits of a job's id.
const ID_DIGITS: usize = 32;

/// The kind of work that an executor does, if its name can be one: lower-case letters, digits and `-`, in parts joined by dots.
pub(crate) fn kind_of(executor: &str) -> Option<String> {
    let kind = executor.replace('_', "-");
    let fits = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    kind.split('.').all(fits).then_some(kind)
}

/// The id of the job that this call of this caller is, whenever it comes.
pub(crate) fn job_id_under(principal: &Principal, kind: &str, key: &str) -> JobId {
    let seed = [kind, &*principal.token_id, key].join("\u{1f}");
    let digest = store::sha256(seed.as_bytes()).to_string();
    JobId::new(format!("work-{}", &digest[..ID_DIGITS]))
}

/// The handle of a job and the kind in it; none if its caller took none.
pub(super) fn of_job(job: &Job) -> Option<(String, String)> {
    let spec = &job.spec;
    let kind = match (spec.source_kind.as_deref()?, spec.source_id.as_deref()?) {
        (SOURCE_KIND, ASYNC) => kind_of(spec.executor.as_deref()?)?,
        (DIRECTIVE_ASYNC, _) => DIRECTIVE_KIND.to_owned(),
        _ => return None,
    };
    let hex = job.id.as_str().strip_prefix("work-")?;
    Some((format!("deferred:{kind}:{hex}"), kind))
}

/// Whether a directive asked for it.
pub(crate) fn is_directive(job: &Job) -> bool {
    let source = job.spec.source_kind.as_deref().unwrap_or_default();
    [DIRECTIVE_ASYNC, DIRECTIVE_SYNC, DIRECTIVE_REJECTED].contains(&source)
}

/// The id of the job that a handle names; whether there is one, and of that kind, is another question.
pub(super) fn job_id(handle: &str) -> Option<String> {
    let (_, hex) = handle.strip_prefix("deferred:")?.split_once(':')?;
    let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_hex.then(|| format!("work-{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_that_the_contract_takes() {
        for (executor, kind) in [
            ("echo", Some("echo")),
            ("json_e_flow.step", Some("json-e-flow.step")),
            ("a1-b", Some("a1-b")),
            ("Echo", None),
            ("1st", None),
            ("", None),
            ("a..b", None),
            ("a.1", None),
            ("a b", None),
        ] {
            assert_eq!(kind_of(executor).as_deref(), kind, "{executor:?}");
        }
    }

    // conforms: O76
    #[test]
    fn same_seed_has_the_same_id_and_nothing_runs_together() {
        let principal = Principal::anybody();
        let id = job_id_under(&principal, "echo", "k");
        assert_eq!(id, job_id_under(&principal, "echo", "k"));
        assert_ne!(id, job_id_under(&principal, "echo", "k2"));
        assert_ne!(id, job_id_under(&principal, "ech", "ok"));
        assert_eq!(id.as_str().len(), "work-".len() + ID_DIGITS);
        assert_eq!(job_id(&format!("deferred:echo:{}", &id.as_str()[5..])).as_deref(), Some(id.as_str()));
        for bad in ["deferred:echo", "deferred:echo:", "work-1", "deferred:echo:a:b", "deferred:echo:a/b"] {
            assert_eq!(job_id(bad), None, "{bad}");
        }
    }
}
