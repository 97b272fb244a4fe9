//! Power losses and kills at every operation of a life. With `Durability::Full` nothing acknowledged is ever lost; the same
//! check must find losses with `Relaxed`, or it would prove nothing.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use crash_vfs::{Disk, Image};
use store_sql::Durability;
use tokio::runtime::Runtime;

use crate::life::{Life, live};
use crate::on_disk;
use crate::promises::broken_promise;

const IMAGES: usize = 5_000;
/// The control needs only enough to see that the check can see.
const CONTROL_IMAGES: usize = 1_000;
const THREADS: usize = 2;

/// What the images of one life showed.
#[derive(Debug, Default)]
struct Findings {
    images: usize,
    opened: usize,
    lost_a_promise: usize,
    broken: usize,
    first: Option<String>,
}

/// One crash: the disk that it left, and when it came.
struct Crash {
    at: usize,
    image: Image,
}

pub fn images_in_all(otherwise: usize) -> usize {
    match std::env::var("LONGHAUL_IMAGES") {
        Ok(images) => images.parse().expect("LONGHAUL_IMAGES is a number"),
        Err(_) => otherwise,
    }
}

/// Lives once, then looks at the disk after every crash.
fn look(durability: Durability, crashes_at: impl Fn(&Life, usize) -> Vec<Image> + Sync) -> Findings {
    let life = &runtime().block_on(live(durability));
    assert!(life.acknowledgements >= 60, "too little was done to prove anything");
    let findings = Mutex::new(Findings::default());
    let seen = Mutex::new(HashSet::new());
    let crashes_at = &crashes_at;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (findings, seen) = (&findings, &seen);
            scope.spawn(move || {
                let runtime = runtime();
                for at in (thread..=life.log.len()).step_by(THREADS) {
                    for image in crashes_at(life, at) {
                        findings.lock().unwrap().images += 1;
                        // Where little was unsynced many images agree; with nothing promised since they need no second look.
                        if seen.lock().unwrap().insert((digest(&image), life.count_by(at))) {
                            let crash = Crash { at, image };
                            let found = crash.check(life, &runtime);
                            findings.lock().unwrap().add(&crash, found);
                        }
                    }
                }
            });
        }
    });
    let findings = findings.into_inner().unwrap();
    println!(
        "{} acknowledgements, {} writes, {} syncs: {findings:?}",
        life.acknowledgements,
        life.log.writes(),
        life.log.syncs()
    );
    findings
}

fn power_losses(in_all: usize) -> impl Fn(&Life, usize) -> Vec<Image> {
    move |life, at| {
        let each = in_all.div_ceil(life.log.len() + 1) as u64;
        (0..each).map(|seed| life.log.power_lost_at(at, seed)).collect()
    }
}

fn kills(life: &Life, at: usize) -> Vec<Image> {
    vec![life.log.killed_at(at)]
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn digest(image: &Image) -> u64 {
    let mut hasher = DefaultHasher::new();
    image.hash(&mut hasher);
    hasher.finish()
}

enum Found {
    Whole,
    Lost(String),
    Broken(String),
}

impl Crash {
    /// Opens what is left as a daemon would, asks for all that was promised, and verifies.
    fn check(&self, life: &Life, runtime: &Runtime) -> Found {
        let disk = Disk::from_image(&self.image);
        let store = match on_disk::open(&disk, Durability::Full) {
            Ok(store) => store,
            Err(error) => return Found::Broken(format!("it cannot be opened: {error}")),
        };
        match runtime.block_on(broken_promise(&store, life.promised_by(self.at))) {
            Ok(None) => {}
            Ok(Some(promise)) => return Found::Lost(format!("{promise:?}")),
            Err(error) => return Found::Broken(error.to_string()),
        }
        match on_disk::verified(&disk) {
            Err(error) => Found::Broken(format!("it cannot be verified: {error}")),
            Ok(verified) => match verified.differences.first() {
                None => Found::Whole,
                Some(difference) => Found::Broken(difference.to_string()),
            },
        }
    }
}

impl Findings {
    fn add(&mut self, crash: &Crash, found: Found) {
        self.opened += 1;
        let what = match found {
            Found::Whole => return,
            Found::Lost(what) => {
                self.lost_a_promise += 1;
                what
            }
            Found::Broken(what) => {
                self.broken += 1;
                what
            }
        };
        self.first.get_or_insert(format!("at operation {}: {what}", crash.at));
    }
}

// conforms: A31
#[test]
fn no_power_loss_takes_anything_that_was_acknowledged() {
    let findings = look(Durability::Full, power_losses(images_in_all(IMAGES)));
    assert!(findings.images >= images_in_all(IMAGES));
    assert_eq!((findings.lost_a_promise, findings.broken), (0, 0), "{findings:?}");
}

#[test]
fn power_loss_takes_what_was_acknowledged_without_a_sync_and_breaks_nothing() {
    let findings = look(Durability::Relaxed, power_losses(CONTROL_IMAGES));
    assert!(findings.lost_a_promise > 0, "the check cannot see a lost commit: {findings:?}");
    assert_eq!(findings.broken, 0, "{findings:?}");
}

#[test]
fn no_kill_takes_anything_that_was_acknowledged_with_or_without_a_sync() {
    for durability in [Durability::Full, Durability::Relaxed] {
        let findings = look(durability, kills);
        assert!(findings.opened > 100, "{findings:?}");
        assert_eq!((findings.lost_a_promise, findings.broken), (0, 0), "{durability:?}: {findings:?}");
    }
}
