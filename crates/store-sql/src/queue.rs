//! The queue before the writer: results and claims go first, new work is refused first.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use store::{StoreError, Urgency};
use tokio::sync::Notify;

/// New work that may wait.
const MAX_NEW_WORK: usize = 4_096;
/// Everything that may wait.
const MAX_WAITING: usize = 16_384;
/// Bytes that may wait.
const MAX_WAITING_BYTES: usize = 64 * 1_048_576;

/// Work that waits for a thread, or for one of several tasks.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    arrived: Condvar,
    told: Notify,
}

struct Waiting<T> {
    results: VecDeque<(T, usize)>,
    new_work: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let waiting =
            Waiting { results: VecDeque::new(), new_work: VecDeque::new(), bytes: 0, closed: false };
        Self { waiting: Mutex::new(waiting), arrived: Condvar::new(), told: Notify::new() }
    }

    /// Lets work wait, or refuses it at once.
    pub(crate) fn push(&self, work: T, urgency: Urgency, bytes: usize) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(StoreError::Unavailable("the store is closed".to_owned()));
        }
        let count = waiting.results.len() + waiting.new_work.len();
        if count >= MAX_WAITING || (waiting.bytes > 0 && waiting.bytes + bytes > MAX_WAITING_BYTES) {
            return Err(StoreError::Busy);
        }
        match urgency {
            Urgency::NewWork
                if waiting.new_work.len() >= MAX_NEW_WORK || waiting.bytes > MAX_WAITING_BYTES / 2 =>
            {
                return Err(StoreError::Busy);
            }
            Urgency::NewWork => waiting.new_work.push_back((work, bytes)),
            Urgency::Result => waiting.results.push_back((work, bytes)),
        }
        waiting.bytes += bytes;
        drop(waiting);
        self.arrived.notify_one();
        self.told.notify_one();
        Ok(())
    }

    /// Waits for work and takes what is there, at most so much; nothing more comes after `None`.
    pub(crate) fn take(&self, most: usize) -> Option<Vec<T>> {
        let mut waiting = self.lock();
        while waiting.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).expect("no holder of the lock panics");
        }
        Some(waiting.batch(most))
    }

    /// The same for a task.
    pub(crate) async fn take_async(&self, most: usize) -> Option<Vec<T>> {
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.is_empty() {
                    let batch = waiting.batch(most);
                    if !waiting.is_empty() {
                        // What is left is the next task's.
                        self.told.notify_one();
                    }
                    return Some(batch);
                }
                if waiting.closed {
                    self.told.notify_one();
                    return None;
                }
            }
            self.told.notified().await;
        }
    }

    /// Takes nothing more in; what waits is still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.told.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().expect("no holder of the lock panics")
    }
}

impl<T> Waiting<T> {
    fn is_empty(&self) -> bool {
        self.results.is_empty() && self.new_work.is_empty()
    }

    fn batch(&mut self, most: usize) -> Vec<T> {
        let mut batch = Vec::with_capacity(most.min(self.results.len() + self.new_work.len()));
        while batch.len() < most {
            let next = self.results.pop_front().or_else(|| self.new_work.pop_front());
            let Some((work, bytes)) = next else { break };
            self.bytes -= bytes;
            batch.push(work);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_before_new_work() {
        let queue = Queue::new();
        queue.push("create", Urgency::NewWork, 1).unwrap();
        queue.push("result", Urgency::Result, 1).unwrap();
        assert_eq!(queue.take(10), Some(vec!["result", "create"]));
    }

    #[test]
    fn new_work_is_refused_first_when_too_much_waits() {
        let queue = Queue::new();
        for _ in 0..MAX_NEW_WORK {
            queue.push((), Urgency::NewWork, 1).unwrap();
        }
        assert_eq!(queue.push((), Urgency::NewWork, 1), Err(StoreError::Busy));
        queue.push((), Urgency::Result, 1).unwrap();
    }

    #[test]
    fn bytes_that_wait_are_bounded() {
        let queue = Queue::new();
        queue.push((), Urgency::Result, MAX_WAITING_BYTES).unwrap();
        assert_eq!(queue.push((), Urgency::Result, 1), Err(StoreError::Busy));
    }

    #[test]
    fn a_closed_queue_hands_out_what_waits_and_takes_nothing_in() {
        let queue = Queue::new();
        queue.push(1, Urgency::Result, 1).unwrap();
        queue.close();
        assert_eq!(queue.push(2, Urgency::Result, 1).unwrap_err().code(), "store_unavailable");
        assert_eq!(queue.take(10), Some(vec![1]));
        assert_eq!(queue.take(10), None);
    }
}
