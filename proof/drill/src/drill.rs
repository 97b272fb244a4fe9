//! One drill from the first line to the last: set up, rounds, calm, the last look, the verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::backups::Backups;
use crate::calm;
use crate::client::Client;
use crate::figures::{Figures, Threshold, thresholds};
use crate::finding::Finding;
use crate::inspect::{Extent, Inspector, store_of};
use crate::kind::Kind;
use crate::nodes::Nodes;
use crate::plan::{Faults, Scene, Sending};
use crate::plant::Plant;
use crate::process::Binary;
use crate::report::{self, Report};
use crate::rounds::{Database, Rounds};
use crate::scratch::Scratch;
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::{Request, Sent, send};
use crate::worker::Worker;
use reporting::{Conditions, Progress};

pub const GOES_ON: &str = "whatever was broken works again";
const CLIENTS: usize = 4;
const WORKERS: usize = 2;

/// What a drill is run with.
pub struct Setting {
    /// What is drilled.
    pub binary: Binary,
    /// How long things are broken.
    pub seconds: u64,
    /// Rounds that there have to be: it goes on past the time for them, but not for ever.
    pub at_least_rounds: u64,
    /// What chance is drawn from.
    pub seed: u64,
    /// Daemons at the same time.
    pub nodes: usize,
    /// The scratch directory, which is there.
    pub dir: PathBuf,
    /// A schema on a server, instead of a file.
    pub database: Option<Box<dyn Database>>,
    /// What is asked for.
    pub kinds: Vec<Kind>,
    /// Whether the binary ends itself at named points.
    pub failpoints: bool,
    /// A lie that must come out red.
    pub plant: Option<Plant>,
    /// Set from outside to end it early.
    pub interrupted: Arc<AtomicBool>,
    /// What a reader of the report has to know.
    pub conditions: Conditions,
    /// What to type for the same decisions.
    pub again: String,
}

impl Setting {
    fn scene(&self) -> Scene {
        Scene {
            nodes: self.nodes,
            shared: self.database.is_some(),
            failpoints: self.failpoints,
            service: self.kinds.iter().any(|kind| [Kind::Service, Kind::Zoo].contains(kind)),
        }
    }
}

/// What a drill proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Enough was broken, and nothing was lost or doubled.
    Green,
    /// Something should not be.
    Red,
    /// Too little happened to prove anything.
    Void,
}

/// What came of a drill.
pub struct Outcome {
    /// The one word.
    pub verdict: Verdict,
    /// Seconds until somebody wanted to see the end of it.
    pub interrupted_after: Option<u64>,
    /// What should not be.
    pub findings: Vec<Finding>,
    /// Whether enough happened.
    pub thresholds: Vec<Threshold>,
    /// For people.
    pub table: String,
    /// For machines.
    pub json: String,
    /// For people with a browser.
    pub page: String,
}

/// Runs it.
pub fn run(setting: &Setting) -> Result<Outcome> {
    let scratch = Scratch::make(setting.dir.clone())?;
    let address = setting.database.as_ref().map(|database| database.address().to_owned());
    let stage = Stage::new(setting.seed, scratch.effects());
    let mut nodes = Nodes::new(&setting.binary, &scratch, &stage.addresses, address.as_deref());
    let service = nodes.start_service()?;
    scratch.connect(&service)?;
    for _ in 0..setting.nodes {
        nodes.add()?;
    }
    let token = token(&nodes)?;
    stage.token.get_or_init(|| token);
    let store = store_of(address.as_deref(), nodes.dir(0));
    let scene = setting.scene();
    let mut rounds = Rounds {
        stage: &stage,
        nodes,
        inspector: Inspector::new(&setting.binary, &stage, store),
        backups: Backups::new(&setting.binary, &stage, setting.database.as_deref(), scratch.backups()),
        faults: Faults::new(setting.seed, scene),
        database: setting.database.as_deref(),
        figures: Figures::new(),
        findings: Vec::new(),
        plant: setting.plant,
        at_least: setting.at_least_rounds,
        uses_service: scene.service,
        interrupted_after: None,
    };
    let ended = std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn({
                let stage = &stage;
                move || Client::new(stage, number, &setting.kinds).run()
            });
        }
        if setting.kinds.contains(&Kind::Pulled) {
            for number in 0..WORKERS {
                let stage = &stage;
                scope.spawn(move || Worker::new(stage, number).run());
            }
        }
        // Whoever wants to know no more is heard wherever the drill is.
        scope.spawn(|| {
            while !stage.is_over() {
                if setting.interrupted.load(Ordering::SeqCst) {
                    stage.over.store(true, Ordering::SeqCst);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let ended = drilled(setting, &mut rounds);
        if setting.interrupted.load(Ordering::SeqCst) {
            rounds.interrupted_after = Some(rounds.figures.whole_seconds());
        }
        stage.over.store(true, Ordering::SeqCst);
        ended
    });
    rounds.nodes.end();
    // A daemon that does not come back is what a drill is for, and what was found before it counts too.
    if let Err(error) = ended {
        rounds.keep(vec![Finding::new(GOES_ON, "the drill", format!("{error:#}"))]);
    }
    Ok(outcome(setting, &rounds, &stage))
}

/// The rounds, the calm and the last look.
fn drilled(setting: &Setting, rounds: &mut Rounds<'_>) -> Result<()> {
    let mut progress = Progress::default();
    let seconds = setting.seconds;
    rounds.run(Duration::from_secs(seconds), |rounds| progress.show(&line(rounds, seconds)))?;
    if rounds.stage.is_over() {
        progress.clear();
        return Ok(());
    }
    rounds.stage.calm.store(true, Ordering::SeqCst);
    rounds.nodes.all_up()?;
    let counted = line(rounds, seconds);
    let stage = rounds.stage;
    let alone = setting.nodes == 1 && !setting.kinds.contains(&Kind::Pulled);
    let within = if alone { calm::ALONE_OVER_WITHIN } else { calm::OVER_WITHIN };
    let show = |open| progress.show(&format!("{counted} · calm: {open} open"));
    let (calm, stuck) = calm::wait(stage, &mut rounds.inspector, within, show)?;
    rounds.figures.calm = calm;
    rounds.keep(stuck);
    rounds.look(Extent::Last)?;
    progress.clear();
    Ok(())
}

fn line(rounds: &Rounds<'_>, seconds: u64) -> String {
    let (figures, oracle) = (&rounds.figures, rounds.stage.oracle());
    format!(
        "{:4.0} of {seconds} s · round {} · {} kills · {} ambiguous · {} accepted · {} open · {} findings",
        figures.seconds(),
        figures.rounds,
        figures.all_kills(),
        oracle.tally.ambiguous,
        oracle.accepted_count(),
        rounds.inspector.history.open_jobs().len(),
        rounds.findings.len()
    )
}

/// A token that all nodes know, and that may run commands: whoever has it is the same to each of them.
fn token(nodes: &Nodes<'_>) -> Result<String> {
    let url = nodes.url(0).context("it is up")?;
    let admin = std::fs::read_to_string(nodes.dir(0).join("admin.token"))?;
    let body = json!({ "name": "drill", "role": "admin", "scopes": ["exec"] }).to_string();
    let request =
        Request { method: "POST", path: "/tokens", key: None, body: Some(&body), within: ANSWER_WITHIN };
    let Sent::Answered(answer) = send(url, admin.trim(), &request, Sending::Whole) else {
        bail!("the first daemon does not answer");
    };
    let secret = answer.json()["secret"].as_str().map(str::to_owned);
    secret.with_context(|| format!("no token was made: {} {}", answer.status, answer.body))
}

fn outcome(setting: &Setting, rounds: &Rounds<'_>, stage: &Stage) -> Outcome {
    let oracle = stage.oracle();
    let history = &rounds.inspector.history;
    let thresholds = thresholds(
        setting.seconds,
        setting.scene(),
        &rounds.figures,
        &oracle.tally,
        oracle.accepted_count() as u64,
        history.taken_over(),
    );
    let interrupted_after = rounds.interrupted_after;
    let enough = thresholds.iter().all(Threshold::is_met) && interrupted_after.is_none();
    let verdict = match (rounds.findings.is_empty(), enough) {
        (false, _) => Verdict::Red,
        (true, true) => Verdict::Green,
        (true, false) => Verdict::Void,
    };
    let report = Report {
        verdict,
        seed: setting.seed,
        seconds: setting.seconds,
        nodes: setting.nodes,
        store: if setting.database.is_some() { "PostgreSQL" } else { "SQLite" },
        figures: &rounds.figures,
        tally: &oracle.tally,
        history,
        accepted: oracle.accepted_count(),
        verified_records: rounds.inspector.verified_records,
        looked_for: rounds.inspector.looked_for,
        thresholds: &thresholds,
        findings: &rounds.findings,
        interrupted_after,
        conditions: &setting.conditions,
        again: &setting.again,
    };
    let (table, json, page) = (report::table(&report), report::json(&report), report::page(&report));
    Outcome { verdict, interrupted_after, findings: rounds.findings.clone(), thresholds, table, json, page }
}
