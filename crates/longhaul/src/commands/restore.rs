//! `longhaul restore`: a backup made a store again, on a file or in a database, all or nothing.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use executors::process::{SetAside, place_artifact_file, set_artifacts_aside, sync_artifact_files};
use serde_json::json;
use store_sql::{BackupError, FileLock, SealedBackup, Sizes, Stage, Watch};

use super::backup::in_words;
use crate::daemon::{CALLBACK_KEY, check_for_restore, make_data_dir, write_callback_key};
use crate::database::{Location, OUTPUT_DIR, Place, STORE_FILE};
use crate::show::{Live, PrintArgs};

const EXAMPLES: &str = "Examples:
  longhaul restore nightly.backup --data-dir ./restored                     as a file
  longhaul restore nightly.backup --database postgres://db/longhaul         into an empty schema
  longhaul serve --data-dir ./restored                                      goes on with what was open
  longhaul serve --data-dir ./restored --no-dispatch                        to look at it first

A backup of either database can be restored into either: this is also the way from SQLite to PostgreSQL and back. Every byte is \
checked before anything is written, and the store is verified before it has its name. Where there is a store already nothing is \
touched. A restore that was interrupted leaves no store: run it again.

What was open goes on when a daemon is started: if the one that was backed up still runs, work is done twice. Whoever had a token has \
access again; the administrator's own is made anew at the first start, in admin.token. Callbacks that are under way stay valid.

Exit codes: 0 done, 1 nothing was restored, and the reason is printed, 2 wrong usage.";

/// Make a store of a backup, where there is none
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArguments {
    /// The backup
    file: PathBuf,
    #[command(flatten)]
    store: Location,
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(arguments: &RestoreArguments) -> Result<()> {
    let begun = Instant::now();
    let (place, data_dir) = (arguments.store.place()?, arguments.store.data_dir());
    let mut live = Live::new();
    let mut watch = |stage, done, of| live.show_share(in_words(stage), done, of);
    let backup = SealedBackup::open(&arguments.file, &mut watch)?;
    let artifacts = backup.artifact_count(Sizes::All)?;
    let key = backup.key(CALLBACK_KEY)?.and_then(|key| key.try_into().ok());
    let mut set_aside = None;
    let restored = match &place {
        Place::File(store) => {
            // Where there is a store, that is what is in the way.
            if !store.exists() {
                check_for_restore(data_dir, key)?;
            }
            let unpacked = backup.restore_to_file(store, &mut watch)?;
            // Again, now that nobody else can have it.
            check_for_restore(data_dir, key)?;
            place_artifacts(&backup, data_dir, Sizes::All, &mut watch)?;
            set_aside = set_unknown_output_aside(&backup, data_dir)?;
            if let Some(key) = key {
                write_callback_key(data_dir, key)?;
            }
            unpacked.finish()?
        }
        Place::Server(address) => {
            // Nothing else of it is in the directory.
            let has_large = backup.artifact_count(Sizes::TooLargeToShare)? > 0;
            let _lock = if has_large {
                let lock = FileLock::acquire(&make_data_dir(data_dir)?.join(STORE_FILE))?;
                check_for_restore(data_dir, key)?;
                Some(lock)
            } else {
                None
            };
            let mut place = |watch: Watch<'_>| {
                // What is put there is for whoever is made of this backup, and for nobody else.
                if let Some(key) = key.filter(|_| has_large) {
                    let written = write_callback_key(data_dir, key);
                    written.map_err(|error| BackupError::of_file(data_dir, io::Error::other(error)))?;
                }
                place_artifacts(&backup, data_dir, Sizes::TooLargeToShare, watch)
            };
            super::wait_for(async {
                Ok(backup.restore_to_server(address, data_dir, &mut place, &mut watch).await?)
            })?
        }
    };
    live.clear();
    let seconds = begun.elapsed().as_secs_f64();
    let answer = json!({
        "position": restored.position, "goes_on_after": restored.goes_on_after,
        "records": restored.records, "facts": restored.facts, "artifacts": artifacts,
        "set_aside": set_aside.as_ref().map_or(0, |aside| aside.jobs), "seconds": seconds,
    });
    arguments.print.print(&answer, |_| {
        format!(
            "restored up to position {}, {} records, {} facts, {artifacts} artifacts, {seconds:.1} s; new positions begin above {}",
            restored.position, restored.records, restored.facts, restored.goes_on_after
        )
    })?;
    if let Some(SetAside { dir, jobs }) = set_aside {
        eprintln!(
            "longhaul: the backup does not know {jobs} of the jobs whose output was here: it is in {} now",
            dir.display()
        );
    }
    Ok(())
}

/// A daemon on what is restored would remove the output of jobs that were made after the backup.
fn set_unknown_output_aside(backup: &SealedBackup, data_dir: &Path) -> Result<Option<SetAside>, BackupError> {
    let output = data_dir.join(OUTPUT_DIR);
    let failed = |source| BackupError::of_file(&output, source);
    let moved = set_artifacts_aside(&output, |job_id| backup.tells_of(job_id).map_err(io::Error::other));
    moved.map_err(failed)
}

/// Writes artifacts as files, and sees that they stay.
fn place_artifacts(
    backup: &SealedBackup,
    data_dir: &Path,
    sizes: Sizes,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    let dir = data_dir.join(OUTPUT_DIR);
    let failed = |source| BackupError::of_file(&dir, source);
    let (mut open, mut done): (Option<File>, u64) = (None, 0);
    backup.each_artifact(sizes, |artifact, number, bytes| {
        if number == 0 {
            open = place_artifact_file(&dir, artifact).map_err(failed)?;
        }
        if let Some(file) = &mut open {
            file.write_all(bytes).map_err(failed)?;
        }
        done += bytes.len() as u64;
        watch(Stage::Artifacts, done, None);
        Ok(())
    })?;
    sync_artifact_files(&dir).map_err(failed)
}
