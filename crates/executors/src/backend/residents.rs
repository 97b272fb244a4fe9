//! The commands of one backend that outlive their jobs: which of them takes a job, and which give way.
//!
//! `choose` decides. One command for each circle, folder and profile, and one job at a time for each of them; the next one waits for
//! its turn with its lease. A seat is free only when everything that its command has started is gone. Kept in memory alone: a
//! daemon that starts again has none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::super::process::Resident;
use engine::Leftover;

/// Whose jobs one command does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Household {
    pub circle: Option<String>,
    pub folder: PathBuf,
    pub profile: Option<String>,
}

/// The commands of one backend.
pub(super) struct Residents {
    most: usize,
    idle_for: Duration,
    seats: Mutex<BTreeMap<Household, Seat>>,
    changed: Notify,
}

/// Where a command has its place.
enum Seat<T = Tenant> {
    /// It has a job, or is being started for one.
    Taken,
    /// It is told to end, and some of it is still there.
    Leaving,
    /// It waits since then.
    Idle { tenant: T, since: Instant },
}

/// A command that stays, and whoever watches that it does not stay for too long.
pub(super) struct Tenant {
    pub resident: Box<Resident>,
    watcher: AbortHandle,
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// What is to be done for a job.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// Its command is there and idle.
    Reuse,
    /// There is none, and room for one.
    Start,
    /// There is none, and this one has to go first.
    After(Household),
    /// Its command has another job, or all have one.
    Wait,
}

/// A seat that is held for one job, and whoever sits there. Dropped without word, the command is ended, and the seat is free then.
pub(super) struct Held {
    residents: Arc<Residents>,
    household: Household,
    sitting: Sitting,
}

/// What becomes of a seat that is let go.
enum Sitting {
    /// Nobody was there yet.
    Nobody,
    Tenant(Tenant),
    /// The seat was given on.
    LetGo,
}

impl Residents {
    pub(super) fn new(most: usize, idle_for: Duration) -> Self {
        Self { most, idle_for, seats: Mutex::default(), changed: Notify::new() }
    }

    /// A seat for a job of this household, as soon as there is one.
    pub(super) async fn seat(self: &Arc<Self>, household: Household) -> Held {
        loop {
            let changed = self.changed.notified();
            if let Some(held) = self.take(&household) {
                return held;
            }
            changed.await;
        }
    }

    /// The seat, if the job need not wait.
    fn take(self: &Arc<Self>, household: &Household) -> Option<Held> {
        let mut seats = self.seats();
        let sitting = match choose(&seats, household, self.most) {
            Choice::Wait => return None,
            Choice::After(other) => {
                if let Some(Seat::Idle { tenant, .. }) = seats.insert(other.clone(), Seat::Leaving) {
                    drop(seats);
                    self.clone().send_away(other, tenant);
                }
                return None;
            }
            Choice::Reuse | Choice::Start => match seats.insert(household.clone(), Seat::Taken) {
                Some(Seat::Idle { tenant, .. }) => Sitting::Tenant(tenant),
                Some(Seat::Taken | Seat::Leaving) | None => Sitting::Nobody,
            },
        };
        drop(seats);
        // One that has died meanwhile is dropped, and with it the seat, which is free when all of it is gone.
        let held = Held { residents: self.clone(), household: household.clone(), sitting };
        held.resident().is_none_or(Resident::is_fit).then_some(held)
    }

    /// Ends a command; its seat is free when nothing of it is left.
    fn send_away(self: Arc<Self>, household: Household, mut tenant: Tenant) -> JoinHandle<()> {
        tokio::spawn(async move {
            tenant.resident.end().await;
            self.free(&household);
        })
    }

    fn free(&self, household: &Household) {
        self.seats().remove(household);
        self.changed.notify_waiters();
    }

    /// Until when the command that waits there may wait; once that is over, it is sent away.
    fn idle_until(self: &Arc<Self>, household: &Household) -> Option<Instant> {
        let mut seats = self.seats();
        let until = match seats.get(household)? {
            Seat::Taken => Instant::now() + self.idle_for,
            Seat::Idle { since, .. } => *since + self.idle_for,
            Seat::Leaving => return None,
        };
        if until > Instant::now() {
            return Some(until);
        }
        if let Some(Seat::Idle { tenant, .. }) = seats.insert(household.clone(), Seat::Leaving) {
            drop(seats);
            self.clone().send_away(household.clone(), tenant);
        }
        None
    }

    fn seats(&self) -> MutexGuard<'_, BTreeMap<Household, Seat>> {
        self.seats.lock().expect("no holder of the lock panics")
    }
}

impl Held {
    fn resident(&self) -> Option<&Resident> {
        match &self.sitting {
            Sitting::Tenant(tenant) => Some(&tenant.resident),
            Sitting::Nobody | Sitting::LetGo => None,
        }
    }

    /// The command that sits there, started if nobody does.
    pub(super) fn resident_or<E>(
        &mut self,
        start: impl FnOnce() -> Result<Resident, E>,
    ) -> Result<&mut Resident, E> {
        if self.resident().is_none() {
            let resident = Box::new(start()?);
            self.sitting = Sitting::Tenant(Tenant { resident, watcher: self.watcher() });
        }
        match &mut self.sitting {
            Sitting::Tenant(tenant) => Ok(&mut tenant.resident),
            Sitting::Nobody | Sitting::LetGo => unreachable!("it was started"),
        }
    }

    /// Sends the command away once it has waited for too long.
    fn watcher(&self) -> AbortHandle {
        let residents: Weak<Residents> = Arc::downgrade(&self.residents);
        let (household, idle_for) = (self.household.clone(), self.residents.idle_for);
        let watching = tokio::spawn(async move {
            let mut until = Instant::now() + idle_for;
            loop {
                tokio::time::sleep_until(until).await;
                match residents.upgrade().and_then(|residents| residents.idle_until(&household)) {
                    Some(later) => until = later,
                    None => break,
                }
            }
        });
        watching.abort_handle()
    }

    /// The command stays for the next job of its household, unless it cannot take one: then it is ended.
    pub(super) fn keep(mut self) -> Leftover {
        match std::mem::replace(&mut self.sitting, Sitting::LetGo) {
            Sitting::Tenant(tenant) if tenant.resident.is_fit() => {
                let idle = Seat::Idle { tenant, since: Instant::now() };
                self.residents.seats().insert(self.household.clone(), idle);
                self.residents.changed.notify_waiters();
                Leftover::Persists
            }
            unfit @ (Sitting::Tenant(_) | Sitting::Nobody | Sitting::LetGo) => {
                self.sitting = unfit;
                Leftover::Ending
            }
        }
    }

    /// Ends the command with everything that it has started, and waits for that. Whoever does not wait to the end leaves the rest to us.
    pub(super) async fn end(mut self) {
        if let Sitting::Tenant(tenant) = std::mem::replace(&mut self.sitting, Sitting::LetGo) {
            // An end that panics has told so already.
            let _ = self.residents.clone().send_away(self.household.clone(), tenant).await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let residents = self.residents.clone();
        match std::mem::replace(&mut self.sitting, Sitting::LetGo) {
            // Without a runtime the daemon is ending, and the supervisor ends the command with it.
            Sitting::Tenant(tenant) => {
                if Handle::try_current().is_ok() {
                    residents.send_away(self.household.clone(), tenant);
                }
            }
            Sitting::Nobody => residents.free(&self.household),
            Sitting::LetGo => {}
        }
    }
}

/// Which seat a job takes. While someone is leaving, nobody else is sent away: there will be room.
fn choose<T>(seats: &BTreeMap<Household, Seat<T>>, household: &Household, most: usize) -> Choice {
    match seats.get(household) {
        Some(Seat::Idle { .. }) => return Choice::Reuse,
        Some(Seat::Taken | Seat::Leaving) => return Choice::Wait,
        None if seats.len() < most => return Choice::Start,
        None => {}
    }
    if seats.values().any(|seat| matches!(seat, Seat::Leaving)) {
        return Choice::Wait;
    }
    let idle = seats.iter().filter_map(|(of, seat)| match seat {
        Seat::Idle { since, .. } => Some((since, of)),
        Seat::Taken | Seat::Leaving => None,
    });
    match idle.min() {
        Some((_, longest)) => Choice::After(longest.clone()),
        None => Choice::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &str) -> Household {
        Household { circle: None, folder: PathBuf::from(folder), profile: None }
    }

    #[test]
    fn job_goes_to_the_command_of_its_household_to_a_new_one_or_waits() {
        let now = Instant::now();
        let (a, b, c) = (of("/a"), of("/b"), of("/c"));
        let first = || Seat::Idle { tenant: (), since: now };
        let second = || Seat::Idle { tenant: (), since: now + Duration::from_secs(1) };
        for (seats, most, chosen) in [
            (vec![], 1, Choice::Start),
            (vec![(&a, first())], 1, Choice::Reuse),
            (vec![(&a, Seat::Taken)], 9, Choice::Wait),
            (vec![(&a, Seat::Leaving)], 9, Choice::Wait),
            (vec![(&b, first())], 2, Choice::Start),
            (vec![(&b, second()), (&c, first())], 2, Choice::After(c.clone())),
            (vec![(&b, Seat::Taken), (&c, second())], 2, Choice::After(c.clone())),
            (vec![(&b, Seat::Leaving), (&c, first())], 2, Choice::Wait),
            (vec![(&b, Seat::Taken), (&c, Seat::Taken)], 2, Choice::Wait),
        ] {
            let seats = seats.into_iter().map(|(of, seat)| (of.clone(), seat)).collect();
            assert_eq!(choose(&seats, &a, most), chosen);
        }
    }

    #[tokio::test]
    async fn seat_that_is_let_go_is_free_for_whoever_waits() {
        let residents = Arc::new(Residents::new(1, Duration::from_mins(10)));
        let first = residents.seat(of("/a")).await;
        let waiting = tokio::spawn({
            let residents = residents.clone();
            async move { residents.seat(of("/b")).await.household.clone() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.await.unwrap(), of("/b"));
    }
}
