//! When the worker looks for tasks: when it is told of new ones, and every so often.
//!
//! The strategies that come with 1.0.0 can leave a worker that nothing wakes: one that is ready is not asked again before the worker
//! waits, and the ones behind it are not asked at all. Timers then come with the next heartbeat, half a minute later. This one asks
//! until everything has said that it will wake the worker.

use std::task::{Context, Poll};
use std::time::Duration;

use apalis_core::backend::ext::poll_strategy::{PollSnapshot, PollStrategy};
use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

pub struct Wakes {
    told: Vec<BoxStream<'static, ()>>,
}

impl Wakes {
    pub fn every(every: Duration) -> Self {
        let (mut tell, ticks) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(every);
            loop {
                interval.tick().await;
                // Full: it has not heard the last one yet.
                let _ = tell.try_send(());
            }
        });
        Self { told: vec![ticks.boxed()] }
    }

    pub fn and<S: Stream + Send + 'static>(mut self, stream: S) -> Self {
        self.told.push(stream.map(|_| ()).boxed());
        self
    }
}

impl PollStrategy for Wakes {
    fn poll_drive(&mut self, cx: &mut Context<'_>, _: &PollSnapshot) -> Poll<Option<()>> {
        let mut woken = Poll::Pending;
        for stream in &mut self.told {
            while let Poll::Ready(Some(())) = stream.poll_next_unpin(cx) {
                woken = Poll::Ready(Some(()));
            }
        }
        woken
    }
}
