//! HTTP/1.1 on a bare TCP stream, because an honest server library would not let a service lie.
//!
//! Reads requests strictly and within limits; writes whatever an [`Answer`] says, broken or not.

mod answer;
mod post;
mod request;
mod server;

pub use answer::{Answer, Response, Then};
pub use post::post_json;
pub use request::Request;
pub use server::{Handler, Server};
