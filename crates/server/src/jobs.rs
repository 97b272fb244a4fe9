//! `/jobs` and `/work`: one file per thing that may be asked of a job.

mod artifact;
mod batch;
mod create;
mod list;
mod managed_execution;
mod new_job;
mod order;
mod read;
pub(crate) mod refused_report;
mod steer;
mod update;
mod visible;
mod why;

pub(crate) use artifact::read_artifact;
pub(crate) use batch::create_batch;
pub(crate) use create::{create, key_of, without_key};
pub(crate) use list::{confine, cursor, cursor_text, list, page};
pub(crate) use new_job::{check_fit, own_job, time};
pub(crate) use order::{Begun, begin, give, give_order, keep, report};
pub(crate) use read::{read_result, read_status};
pub(crate) use steer::*;
pub(crate) use update::update;
pub(crate) use visible::{Visible, job_of, steerable_job, visible_called, visible_job, visible_named};
pub(crate) use why::why;
