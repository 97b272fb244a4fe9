//! `/jobs` and `/work`: one file per thing that may be asked of a job.

mod answer;
mod artifact;
mod batch;
mod cancel;
mod create;
mod list;
mod managed_execution;
mod new_job;
mod order;
mod purge;
mod read;
pub(crate) mod refused_report;
mod run;
mod update;
mod visible;
mod why;

pub(crate) use answer::answer;
pub(crate) use artifact::read_artifact;
pub(crate) use batch::create_batch;
pub(crate) use cancel::{cancel, count_repeat};
pub(crate) use create::{create, key_of, without_key};
pub(crate) use list::{confine, cursor, cursor_text, list, page};
pub(crate) use new_job::{check_fit, own_job, time};
pub(crate) use order::{Begun, begin, give, give_order, keep};
pub(crate) use purge::purge;
pub(crate) use read::{read_result, read_status};
pub(crate) use run::run;
pub(crate) use update::update;
pub(crate) use visible::{Visible, job_of, steerable_job, visible_called, visible_job, visible_named};
pub(crate) use why::why;
