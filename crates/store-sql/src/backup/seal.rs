//! The seal: a digest over every byte of a backup, behind its last page, where SQLite does not look.
//!
//! A bit that flips anywhere, a file that was cut off or that somebody has written to does not fit its seal.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::found::Found;
use super::{BLOCK_BYTES, BackupError, Stage, Watch};

const MARK: &[u8; 16] = b"longhaul backup\n";
const SEAL_BYTES: usize = MARK.len() + 32;

/// Seals a file, and puts all of it on stable storage.
pub(super) fn seal(path: &Path, watch: Watch<'_>) -> Result<u64, BackupError> {
    let failed = |source| BackupError::of_file(path, source);
    let mut file = File::options().read(true).write(true).open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let digest = digest(&mut file, length, watch).map_err(failed)?;
    let seal = [&MARK[..], &digest].concat();
    file.write_all(&seal).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(length + seal.len() as u64)
}

/// The length of what the seal of a file vouches for.
pub(super) fn check(path: &Path, watch: Watch<'_>) -> Result<u64, BackupError> {
    let failed = |source| BackupError::of_file(path, source);
    let other = |reason: &str| BackupError::NotABackup { path: path.to_owned(), reason: reason.to_owned() };
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(other("it is no file"));
    }
    let Some(length) = about.len().checked_sub(SEAL_BYTES as u64) else {
        return Err(other("it is too short"));
    };
    file.seek(SeekFrom::Start(length)).map_err(failed)?;
    let mut found = [0; SEAL_BYTES];
    file.read_exact(&mut found).map_err(failed)?;
    let (mark, sealed) = found.split_at(MARK.len());
    if mark != MARK {
        let found = Found::at(path).map_err(failed)?;
        if matches!(found, Found::Store | Found::InUse) {
            return Err(other(&format!(
                "it is {}; make a backup of it with `longhaul backup FILE --data-dir DIR`, and restore that",
                found.in_words()
            )));
        }
        return Err(other("the seal at its end is missing"));
    }
    file.rewind().map_err(failed)?;
    let digest = digest(&mut file, length, watch).map_err(failed)?;
    if digest[..] != *sealed {
        return Err(BackupError::Damaged {
            path: path.to_owned(),
            reason: "its bytes are not those that were sealed".to_owned(),
        });
    }
    Ok(length)
}

/// Copies what the seal vouches for.
pub(super) fn copy_unsealed(from: &Path, to: &mut File, length: u64) -> std::io::Result<()> {
    let mut source = File::open(from)?.take(length);
    if std::io::copy(&mut source, to)? < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn digest(file: &mut File, length: u64, watch: Watch<'_>) -> std::io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut done = 0;
    while done < length {
        let part = usize::try_from(length - done).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        file.read_exact(&mut block[..part])?;
        digest.update(&block[..part]);
        done += part as u64;
        watch(Stage::Sealing, done, Some(length));
    }
    Ok(digest.finalize().into())
}
