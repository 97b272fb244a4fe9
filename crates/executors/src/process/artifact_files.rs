//! Artifacts as a backup takes them and a restore brings them: the files of a directory one after the other, without a daemon.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::{AttemptId, JobId, RecordId};
use rustix::io::Errno;
use store::ArtifactName;

use super::artifacts::{Artifacts, DIRECTORY_MODE, FILE_MODE, is_name, is_segment, open_below};

/// Gives every artifact in a directory, as it is now. What goes meanwhile is passed over; a directory that is not there has none.
pub fn each_artifact_file<E: From<io::Error>>(
    dir: &Path,
    mut take: impl FnMut(ArtifactName<'_>, File) -> Result<(), E>,
) -> Result<(), E> {
    for job in names_in(dir)? {
        let Ok(RecordId::Job(job_id)) = RecordId::parse(&job?) else { continue };
        for attempt in names_in(&dir.join(job_id.as_str()))? {
            let attempt = attempt?;
            if is_segment(&attempt) {
                each_of_attempt(dir, &job_id, &AttemptId::new(attempt), &mut take)?;
            }
        }
    }
    Ok(())
}

fn each_of_attempt<E: From<io::Error>>(
    dir: &Path,
    job_id: &JobId,
    attempt_id: &AttemptId,
    take: &mut impl FnMut(ArtifactName<'_>, File) -> Result<(), E>,
) -> Result<(), E> {
    let top = dir.join(job_id.as_str()).join(attempt_id.as_str());
    // Names may have directories in them; how many is bounded by what is a name.
    let mut waiting = vec![String::new()];
    while let Some(above) = waiting.pop() {
        for name in names_in(&top.join(&above))? {
            let name = if above.is_empty() { name? } else { format!("{above}/{}", name?) };
            if !is_name(&name) {
                continue;
            }
            if fs::symlink_metadata(top.join(&name)).is_ok_and(|found| found.is_dir()) {
                waiting.push(name);
                continue;
            }
            match open_below(dir, job_id.as_str(), attempt_id.as_str(), &name) {
                Ok(file) => take(ArtifactName { job_id, attempt_id, name: &name }, file)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }
    Ok(())
}

/// A file for an artifact; none if a name cannot be part of a path. What is there of it already is its beginning, or all of it and more: it is
/// written over and not cut off.
pub fn place_artifact_file(dir: &Path, artifact: ArtifactName<'_>) -> io::Result<Option<File>> {
    let ArtifactName { job_id, attempt_id, name } = artifact;
    let Some(path) = Artifacts::path_within(job_id, attempt_id, name) else { return Ok(None) };
    let path = dir.join(path);
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(FILE_MODE);
    options.open(path).map(Some)
}

/// Artifacts that were set aside.
pub struct SetAside {
    /// Where they are: below the directory of all, under a name that is no job's.
    pub dir: PathBuf,
    /// Of so many jobs.
    pub jobs: u64,
}

/// Moves the artifacts of jobs that nobody knows to a directory of their own, if there are any.
pub fn set_artifacts_aside<E: From<io::Error>>(
    dir: &Path,
    mut is_known: impl FnMut(&JobId) -> Result<bool, E>,
) -> Result<Option<SetAside>, E> {
    let mut aside: Option<SetAside> = None;
    for job in names_in(dir)? {
        let Ok(RecordId::Job(job_id)) = RecordId::parse(&job?) else { continue };
        if is_known(&job_id)? {
            continue;
        }
        let set = match &mut aside {
            Some(set) => set,
            None => aside.insert(SetAside { dir: make_aside(dir)?, jobs: 0 }),
        };
        fs::rename(dir.join(job_id.as_str()), set.dir.join(job_id.as_str()))?;
        set.jobs += 1;
    }
    Ok(aside)
}

/// A directory that was not there.
fn make_aside(dir: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let aside = dir.join(format!("before-restore-{number}"));
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&aside) {
            Ok(()) => return Ok(aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Everything that was placed, on stable storage: once for all, because there may be very many.
pub fn sync_artifact_files(dir: &Path) -> io::Result<()> {
    match File::open(dir) {
        Ok(dir) => Ok(rustix::fs::syncfs(dir)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The names in a directory, read as they are asked for.
fn names_in(dir: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => Some(entries),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(error) => return Err(error),
    };
    Ok(entries.into_iter().flatten().filter_map(|entry| match entry {
        Ok(entry) => entry.file_name().into_string().ok().map(Ok),
        Err(error) => Some(Err(error)),
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn all(dir: &Path) -> Vec<String> {
        let mut names = Vec::new();
        each_artifact_file::<io::Error>(dir, |artifact, _| {
            names.push(artifact.name.to_owned());
            Ok(())
        })
        .unwrap();
        names.sort();
        names
    }

    #[test]
    fn artifacts_are_found_with_the_directories_in_their_names_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (job_id, attempt_id) = (JobId::new("work-1"), AttemptId::new("attempt-1"));
        for name in ["stdout", "pages/one two.html", "pages/deep/er.html"] {
            let artifact = ArtifactName { job_id: &job_id, attempt_id: &attempt_id, name };
            let mut file = place_artifact_file(dir.path(), artifact).unwrap().unwrap();
            file.write_all(name.as_bytes()).unwrap();
        }
        symlink("/etc", dir.path().join("work-1/attempt-1/elsewhere")).unwrap();
        assert_eq!(all(dir.path()), ["pages/deep/er.html", "pages/one two.html", "stdout"]);
        let escape = ArtifactName { job_id: &job_id, attempt_id: &attempt_id, name: "../../../escaped" };
        assert!(place_artifact_file(dir.path(), escape).unwrap().is_none());
    }
}
