//! The server as its callers see it: a real listener, a real file, the real engine. One file per topic.

mod given;

mod create;
mod list;
mod status;
