//! Who asks, and what they may: tokens, roles, circles, the attempts of workers, the audit log.

pub(crate) mod attempt_alias;
pub(crate) mod attempt_token;
pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod authorise;
pub(crate) mod secret;
pub(crate) mod visible;

pub(crate) use audit::Verdict;
pub(crate) use authenticate::Principal;
