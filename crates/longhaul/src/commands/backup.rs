//! `longhaul backup`: everything that a store holds in one file, beside the daemon that runs on it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use executors::process::each_artifact_file;
use serde_json::json;
use store_sql::{BackupError, Contents, Draft, Existing, Stage};

use crate::daemon::{CALLBACK_KEY, kept_callback_key};
use crate::database::{Location, OUTPUT_DIR, Place};
use crate::exit::Failed;
use crate::show::{Live, PrintArgs};

const EXAMPLES: &str = "Examples:
  longhaul backup nightly.backup                                  of ./longhaul-data, while its daemon runs
  longhaul backup nightly.backup --data-dir /var/lib/longhaul --force
  longhaul backup nightly.backup --database postgres://db/longhaul
  longhaul restore nightly.backup --data-dir ./restored           a store again

A backup is one file, the same for SQLite and PostgreSQL: everything at one position of the ledger, verified before it has its name. \
It is made beside a running daemon and holds up none of its work. Tokens are in it as digests, so whoever had access has \
access again, but nobody can read a token from it. Keep it like the data directory all the same: it holds inputs and results of all \
jobs, and the key that callback addresses are signed with; only its owner can read it.

Not in it: the configuration, connectors, plugins and pipelines, which are your files, and secrets that they refer to.

--force replaces only what is a backup, whole or damaged, or empty. Nothing is written into the data directory itself: a backup that is \
lost with its store is none.

Exit codes: 0 done, 1 there is no backup, and the reason is printed, 2 wrong usage.";

/// Write everything that the store holds to one file; may run beside a daemon
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct BackupArguments {
    /// The file to make; must not exist yet, unless --force
    file: PathBuf,
    #[command(flatten)]
    store: Location,
    /// Leave out what attempts have written: their output, which may be most of it
    #[arg(long)]
    without_artifacts: bool,
    /// Replace an earlier backup of that name, once this one is done
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(arguments: &BackupArguments) -> Result<()> {
    if arguments.file == Path::new("-") {
        let told = "a backup is sealed in its place and cannot go to standard output; name a file, or ./- for one of that name";
        return Err(Failed::usage(told).into());
    }
    let begun = Instant::now();
    let existing = if arguments.force { Existing::Replaced } else { Existing::Kept };
    let (place, data_dir) = (arguments.store.place_of_store()?, arguments.store.data_dir());
    check_is_outside(&arguments.file, data_dir)?;
    let artifacts = data_dir.join(OUTPUT_DIR);
    let mut live = Live::new();
    let mut watch = |stage, done, of| live.show_share(in_words(stage), done, of);
    let artifact_bytes = if arguments.without_artifacts { 0 } else { bytes_in(&artifacts)? };
    let mut draft = Draft::begin(&arguments.file, existing)?;
    match &place {
        Place::File(store) => {
            draft.copy_file(store, artifact_bytes, &mut watch)?;
            if let Some(key) = kept_callback_key(data_dir)? {
                draft.keep_key(CALLBACK_KEY, &key)?;
            }
        }
        Place::Server(address) => super::wait_for(async {
            let contents =
                if arguments.without_artifacts { Contents::WithoutArtifacts } else { Contents::Everything };
            Ok(draft.copy_server(address, contents, &mut watch).await?)
        })?,
    }
    if !arguments.without_artifacts {
        let mut done = 0;
        each_artifact_file(&artifacts, |artifact, mut file| -> Result<()> {
            done += draft.keep_artifact(artifact, &mut file)?;
            watch(Stage::Artifacts, done, Some(artifact_bytes));
            Ok(())
        })?;
    }
    let made = draft.finish(&mut watch)?;
    live.clear();
    let (file, seconds) = (arguments.file.display(), begun.elapsed().as_secs_f64());
    let answer = json!({
        "file": file.to_string(), "position": made.position, "records": made.records, "facts": made.facts,
        "artifacts": made.artifacts, "bytes": made.bytes, "seconds": seconds,
    });
    arguments.print.print(&answer, |_| {
        format!(
            "{file}: position {}, {} records, {} facts, {} artifacts, {} bytes, {seconds:.1} s",
            made.position, made.records, made.facts, made.artifacts, made.bytes
        )
    })
}

/// Wherever its name leads. A file elsewhere that is the store's by a link is refused as what it is.
fn check_is_outside(file: &Path, data_dir: &Path) -> Result<(), BackupError> {
    // Without the one there are no files of a store, and without the other there will be no backup.
    let Ok(data_dir) = data_dir.canonicalize() else { return Ok(()) };
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Ok(directory) = directory.unwrap_or(Path::new(".")).canonicalize() else { return Ok(()) };
    if directory.starts_with(&data_dir) {
        return Err(BackupError::InTheDataDirectory { path: file.to_owned() });
    }
    Ok(())
}

/// What is being done, for the line that moves.
pub fn in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::Copying => "copying",
        Stage::Artifacts => "artifacts",
        Stage::Verifying => "verifying",
        Stage::Sealing => "sealing",
        Stage::Restoring => "restoring",
    }
}

fn bytes_in(artifacts: &Path) -> Result<u64> {
    let mut bytes = 0;
    each_artifact_file(artifacts, |_, file| {
        bytes += file.metadata()?.len();
        Ok::<_, std::io::Error>(())
    })
    .map_err(|source| BackupError::of_file(artifacts, source))
    .context("cannot read the artifacts")?;
    Ok(bytes)
}
