//! Mount points below a directory. What is mounted there is not ours to remove.
//!
//! A recursive removal follows no link, but it goes through a mount: a command that ran without the sandbox and mounted something below its
//! workspace would have it deleted with the workspace. Whoever removes a tree asks here first.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The mounts that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";
/// The column of a line that holds the mount point.
const MOUNT_POINT: usize = 4;

/// Refuses a directory with a mount point in it. One that is not there is fine.
pub(crate) fn check_none_in(directory: &Path) -> io::Result<()> {
    let directory = match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    match first_in(&std::fs::read(MOUNTS)?, &directory) {
        None => Ok(()),
        Some(found) => {
            let found = String::from_utf8_lossy(found);
            Err(io::Error::other(format!("{found} is a mount point: unmount it, then it can be removed")))
        }
    }
}

/// The first mount point that is the directory or lies below it, as the system writes it.
fn first_in<'a>(mounts: &'a [u8], directory: &Path) -> Option<&'a [u8]> {
    let directory = escaped(directory.as_os_str().as_bytes());
    let is_in = |point: &&[u8]| {
        point.strip_prefix(&directory[..]).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let lines = mounts.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(MOUNT_POINT)).find(is_in)
}

/// Blanks, line ends and backslashes as the system writes them.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b' ' => escaped.extend(b"\\040"),
            b'\t' => escaped.extend(b"\\011"),
            b'\n' => escaped.extend(b"\\012"),
            b'\\' => escaped.extend(b"\\134"),
            other => escaped.push(*other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTED: &[u8] = b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        23 22 254:0 / /data/work\\040space/bound rw,relatime - ext4 /dev/vda rw\n\
        24 22 0:5 / /data/other rw - tmpfs none rw\n";

    #[test]
    fn mount_point_in_a_directory_is_found() {
        for (directory, found) in [
            ("/data/work space", Some("/data/work\\040space/bound")),
            ("/data/work space/bound", Some("/data/work\\040space/bound")),
            ("/data/other", Some("/data/other")),
            ("/data/oth", None),
            ("/data/work", None),
            ("/elsewhere", None),
        ] {
            let first = first_in(MOUNTED, Path::new(directory));
            assert_eq!(first, found.map(str::as_bytes), "{directory}");
        }
    }

    #[test]
    fn mounted_directory_is_refused_and_a_missing_one_is_fine() {
        // The system has this one wherever commands run.
        assert!(check_none_in(Path::new("/proc")).is_err());
        let dir = tempfile::tempdir().unwrap();
        check_none_in(dir.path()).unwrap();
        check_none_in(&dir.path().join("missing")).unwrap();
    }
}
