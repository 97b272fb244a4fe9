//! `/jobs` and `/work`: one file per thing that may be asked of a job.

mod answer;
mod artifact;
mod batch;
mod cancel;
mod create;
mod draft;
mod list;
mod managed_execution;
mod order;
mod purge;
mod read;
mod run;
mod update;
mod visible;
mod why;

pub(crate) use answer::answer;
pub(crate) use artifact::read_artifact;
pub(crate) use batch::create_batch;
pub(crate) use cancel::cancel;
pub(crate) use create::{create, key_of};
pub(crate) use draft::{Draft, draft, time};
pub(crate) use list::{confine, cursor, cursor_text, list};
pub(crate) use order::{Begun, begin, give, give_order, keep};
pub(crate) use purge::purge;
pub(crate) use read::{read_result, read_status};
pub(crate) use run::run;
pub(crate) use update::update;
pub(crate) use visible::{Visible, job_of, steerable_job, steerable_named, visible_job, visible_named};
pub(crate) use why::why;
