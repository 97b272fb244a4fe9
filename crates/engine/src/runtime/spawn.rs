//! Where tasks run: on the runtime, or inside a simulation of it.

use futures::future::BoxFuture;

/// What a task does.
pub type Task = BoxFuture<'static, ()>;

/// Starts tasks that go on by themselves.
pub trait Spawn: Send + Sync {
    /// Starts one.
    fn spawn(&self, task: Task);
}

/// On the current tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnRuntime;

impl Spawn for OnRuntime {
    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }
}
