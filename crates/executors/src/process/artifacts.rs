//! The files that attempts leave: `<dir>/<job>/<attempt>/<name>`, as long as their job has its bodies.
//!
//! Removal follows the commit that retires or purges a job, on a thread of its own. Whoever is killed in between leaves the files; `jobs` lists
//! what is there, so that a start can remove what the store no longer knows. Does not ask the store itself, but for what nodes share:
//! there, a file that is done is kept in chunks before the result names it, and removed by the store.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use domain::{AttemptId, JobId, RecordId};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::{
    ARTIFACT_CHUNK_BYTES, ArtifactName, Commit, Committed, MAX_SHARED_ARTIFACT_BYTES, Removal,
    SharedArtifacts, StoreError,
};
use tokio::io::AsyncReadExt;

use crate::mount_points;
use engine::CommitWatch;

/// Removals that may wait; more are done by whoever asks.
const REMOVALS_WAITING: usize = 4_096;
/// The longest part of a path.
const MAX_SEGMENT_BYTES: usize = 128;
/// The longest name of an artifact, with the directories in it.
const MAX_NAME_BYTES: usize = 512;
/// And the longest part of it, as file systems have it.
const MAX_PART_BYTES: usize = 255;
/// Directories in a name, and the file.
const MAX_PARTS: usize = 16;
/// Read at once of a file that is kept.
const CHUNK_BYTES: usize = 65_536;
/// For us alone.
pub(super) const DIRECTORY_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;
/// The attempt's, the job's, and the one of all.
const DIRECTORIES_ABOVE: usize = 3;

/// The artifacts of all jobs.
pub struct Artifacts {
    dir: PathBuf,
    removals: SyncSender<JobId>,
    shared: Option<Arc<dyn SharedArtifacts>>,
}

impl Artifacts {
    /// The artifacts in this directory, which is made if it is not there.
    pub fn in_dir(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&dir)?;
        let (removals, asked) = sync_channel(REMOVALS_WAITING);
        let of_thread = dir.clone();
        std::thread::Builder::new()
            .name("remove_artifacts".to_owned())
            .spawn(move || remove_as_asked(&of_thread, &asked))?;
        Ok(Self { dir, removals, shared: None })
    }

    /// The same, and what is not too large is kept for other nodes too.
    #[must_use]
    pub fn shared_through(self, store: Arc<dyn SharedArtifacts>) -> Self {
        Self { shared: Some(store), ..self }
    }

    /// The rest of a piece of one that another node may have kept, from an offset on; none if nobody has.
    pub async fn shared_piece(
        &self,
        artifact: ArtifactName<'_>,
        offset: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.shared {
            Some(store) => store.piece(artifact, offset).await,
            None => Ok(None),
        }
    }

    /// Keeps a file that is done for other nodes. What cannot be kept, or is too large, stays here alone.
    pub(crate) async fn share(&self, artifact: ArtifactName<'_>, path: &Path, bytes: u64) {
        let Some(store) = &self.shared else { return };
        if bytes > MAX_SHARED_ARTIFACT_BYTES {
            return;
        }
        if let Err(error) = keep_all(&**store, artifact, path).await {
            tracing::warn!(job = %artifact.job_id, "{} stays on this node: {error}", artifact.name);
        }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens one for reading; none if there is no such file. No link is followed, and no name leads out of the directory.
    pub fn open(&self, job_id: &JobId, attempt_id: &AttemptId, name: &str) -> io::Result<Option<File>> {
        if Self::path_within(job_id, attempt_id, name).is_none() {
            return Ok(None);
        }
        match open_below(&self.dir, job_id.as_str(), attempt_id.as_str(), name) {
            Ok(file) => Ok(Some(file)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The jobs that have any.
    pub fn jobs(&self) -> io::Result<Vec<JobId>> {
        let mut jobs = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            if let Some(name) = entry?.file_name().to_str()
                && let Ok(RecordId::Job(job_id)) = RecordId::parse(name)
            {
                jobs.push(job_id);
            }
        }
        Ok(jobs)
    }

    /// Removes a job's, soon.
    pub fn remove(&self, job_id: &JobId) {
        match self.removals.try_send(job_id.clone()) {
            Ok(()) => {}
            Err(TrySendError::Full(job_id) | TrySendError::Disconnected(job_id)) => {
                remove_now(&self.dir, &job_id);
            }
        }
    }

    /// The path of one within the directory; none if an id cannot be part of a path.
    pub(super) fn path_within(job_id: &JobId, attempt_id: &AttemptId, name: &str) -> Option<PathBuf> {
        let fits = is_segment(job_id.as_str()) && is_segment(attempt_id.as_str()) && is_name(name);
        fits.then(|| [job_id.as_str(), attempt_id.as_str(), name].iter().collect())
    }

    /// Keeps a copy of a file, on stable storage before a result names it. For a thread that may wait.
    pub(crate) fn keep_file(
        &self,
        (job_id, attempt_id): (&JobId, &AttemptId),
        name: &str,
        source: &Path,
    ) -> io::Result<KeptFile> {
        let path = Self::path_within(job_id, attempt_id, name)
            .ok_or_else(|| io::Error::other(format!("{name:?} cannot be the name of an artifact")))?;
        let whole = self.dir.join(&path);
        if let Some(directory) = whole.parent() {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        }
        let (mut from, mut hash) = (File::open(source)?, Sha256::new());
        let mut to =
            OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&whole)?;
        let (mut chunk, mut bytes) = (vec![0; CHUNK_BYTES], 0);
        loop {
            let count = from.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            to.write_all(&chunk[..count])?;
            hash.update(&chunk[..count]);
            bytes += count as u64;
        }
        to.sync_all()?;
        for directory in whole.ancestors().skip(1).take_while(|above| above.starts_with(&self.dir)) {
            File::open(directory)?.sync_all()?;
        }
        let sha256 = domain::Digest(hash.finalize().into());
        Ok(KeptFile { path, bytes, truncated: false, sha256 })
    }
}

/// A file that was kept.
pub(crate) struct KeptFile {
    /// Within the directory of all artifacts.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// There was more of it.
    pub(crate) truncated: bool,
    pub(crate) sha256: domain::Digest,
}

impl KeptFile {
    /// As results list it.
    pub(crate) fn listed(&self, name: &str) -> Value {
        let Self { path, bytes, truncated, sha256 } = self;
        json!({ "name": name, "path": path, "bytes": bytes, "truncated": truncated, "sha256": sha256 })
    }
}

impl CommitWatch for Artifacts {
    fn committed(&self, commit: &Commit, _: Committed) {
        for change in &commit.changes {
            let RecordId::Job(job_id) = &change.id else { continue };
            match change.removal {
                Removal::Bodies | Removal::Record => self.remove(job_id),
                Removal::Nothing | Removal::Errors | Removal::OlderFacts => {}
            }
        }
    }
}

/// No link below the directory is followed.
pub(super) fn open_below(dir: &Path, job: &str, attempt: &str, name: &str) -> rustix::io::Result<File> {
    let directory = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (above, name) = name.rsplit_once('/').map_or((None, name), |(above, name)| (Some(above), name));
    let mut at = openat(CWD, dir, directory, Mode::empty())?;
    for part in [job, attempt].into_iter().chain(above.into_iter().flat_map(|above| above.split('/'))) {
        at = openat(&at, part, directory | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // A FIFO without a writer would be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&at, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(rustix::io::Errno::NOENT);
    }
    Ok(File::from(file))
}

async fn keep_all(store: &dyn SharedArtifacts, artifact: ArtifactName<'_>, path: &Path) -> io::Result<()> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut chunk = Vec::with_capacity(ARTIFACT_CHUNK_BYTES);
    for number in 0..=MAX_SHARED_ARTIFACT_BYTES / ARTIFACT_CHUNK_BYTES as u64 {
        chunk.clear();
        (&mut file).take(ARTIFACT_CHUNK_BYTES as u64).read_to_end(&mut chunk).await?;
        if chunk.is_empty() {
            break;
        }
        store.keep_chunk(artifact, number, &chunk).await.map_err(io::Error::other)?;
    }
    Ok(())
}

/// A new file, with the directories above it.
pub(super) async fn create(path: &Path) -> io::Result<tokio::fs::File> {
    if let Some(directory) = path.parent() {
        tokio::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).await?;
    }
    tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path).await
}

/// The names of attempt and job, which lead to a file, on stable storage too.
pub(super) async fn sync_directories(path: &Path) -> io::Result<()> {
    for directory in path.ancestors().skip(1).take(DIRECTORIES_ABOVE) {
        tokio::fs::File::open(directory).await?.sync_all().await?;
    }
    Ok(())
}

fn remove_as_asked(dir: &Path, asked: &Receiver<JobId>) {
    while let Ok(job_id) = asked.recv() {
        remove_now(dir, &job_id);
    }
}

fn remove_now(dir: &Path, job_id: &JobId) {
    if !is_segment(job_id.as_str()) {
        return;
    }
    let files = dir.join(job_id.as_str());
    match mount_points::check_none_in(&files).and_then(|()| fs::remove_dir_all(&files)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(job = %job_id, "artifacts not removed: {error}"),
    }
}

/// One plain name: nothing that leads anywhere else.
pub(crate) fn is_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_SEGMENT_BYTES).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(plain)
}

/// A name as whoever left the file has chosen it, with the directories above it: any text that stays below, and on one line.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        (1..=MAX_PART_BYTES).contains(&part.len())
            && part != "."
            && part != ".."
            && !part.contains(char::is_control)
    };
    text.len() <= MAX_NAME_BYTES && text.split('/').count() <= MAX_PARTS && text.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn given() -> (tempfile::TempDir, Artifacts) {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::in_dir(dir.path().join("artifacts")).unwrap();
        let attempt = artifacts.dir().join("work-1/attempt-1");
        fs::create_dir_all(&attempt).unwrap();
        fs::write(attempt.join("stdout"), "said").unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        (dir, artifacts)
    }

    fn open(artifacts: &Artifacts, job: &str, attempt: &str, name: &str) -> Option<String> {
        let mut file = artifacts.open(&JobId::new(job), &AttemptId::new(attempt), name).unwrap()?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn artifact_is_read_back_by_its_name() {
        let (_dir, artifacts) = given();
        assert_eq!(open(&artifacts, "work-1", "attempt-1", "stdout").as_deref(), Some("said"));
        assert_eq!(open(&artifacts, "work-1", "attempt-1", "stderr"), None);
        assert_eq!(open(&artifacts, "work-2", "attempt-1", "stdout"), None);
        assert_eq!(artifacts.jobs().unwrap(), [JobId::new("work-1")]);
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let (dir, artifacts) = given();
        let secret = dir.path().join("secret");
        for (job, attempt, name) in [
            ("work-1", "attempt-1", "../../../secret"),
            ("work-1", "..", "stdout"),
            ("..", "..", "secret"),
            ("work-1", "attempt-1", secret.to_str().unwrap()),
            ("work-1", "attempt-1", ""),
            ("work-1", "attempt-1", "."),
            ("work-1/attempt-1", ".", "stdout"),
            ("work-1", "attempt-1", "stdout\0"),
        ] {
            assert_eq!(open(&artifacts, job, attempt, name), None, "{job} {attempt} {name}");
        }
    }

    #[test]
    fn file_below_directories_and_with_an_odd_name_is_kept_and_read_back_by_its_name() {
        let (dir, artifacts) = given();
        let source = dir.path().join("secret");
        let ids = (JobId::new("work-1"), AttemptId::new("attempt-1"));
        for name in ["charts/level one.png", ".hidden", "größe %2F 50%.txt", "a/b/c"] {
            let kept = artifacts.keep_file((&ids.0, &ids.1), name, &source).unwrap();
            assert_eq!((kept.bytes, kept.sha256), (6, store::sha256(b"secret")));
            assert_eq!(open(&artifacts, "work-1", "attempt-1", name).as_deref(), Some("secret"), "{name}");
        }
        symlink(dir.path(), artifacts.dir().join("work-1/attempt-1/out")).unwrap();
        assert_eq!(open(&artifacts, "work-1", "attempt-1", "out/secret"), None);
        for name in
            ["", "a//b", "../x", "a/../b", "line\nbreak", "/etc/passwd", &"x".repeat(300), &"a/".repeat(17)]
        {
            assert!(artifacts.keep_file((&ids.0, &ids.1), name, &source).is_err(), "{name:?}");
        }
    }

    #[test]
    fn link_and_fifo_and_directory_are_no_artifacts() {
        let (dir, artifacts) = given();
        let attempt = artifacts.dir().join("work-1/attempt-1");
        symlink(dir.path().join("secret"), attempt.join("link")).unwrap();
        fs::create_dir(attempt.join("below")).unwrap();
        symlink(attempt.as_path(), artifacts.dir().join("work-1/attempt-2")).unwrap();
        rustix::fs::mknodat(CWD, attempt.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        for name in ["link", "below", "fifo"] {
            assert_eq!(open(&artifacts, "work-1", "attempt-1", name), None, "{name}");
        }
        assert_eq!(open(&artifacts, "work-1", "attempt-2", "stdout"), None);
    }
}
