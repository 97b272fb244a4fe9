//! What a supervisor is sent to do: one command, as a file in memory whose descriptor goes over their socket with those of the command.
//!
//! A file, because words and variables may be longer than a socket holds, and whoever sends them must not wait for who reads them. Every
//! part ends with a NUL, which none can hold.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

/// More than any system takes as the words and variables of a process.
const MAX_BYTES: usize = 8 * 1_048_576;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Errand {
    /// Between TERM and KILL.
    pub grace: Duration,
    pub working_directory: PathBuf,
    /// The user and the group that it runs as; none: those of the daemon.
    pub run_as: Option<(u32, u32)>,
    /// What it may reach although the sandbox protects what is around it.
    pub own_paths: Vec<PathBuf>,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// All of it: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
}

impl Errand {
    /// As a file that is read from its beginning.
    pub(super) fn to_file(&self) -> io::Result<OwnedFd> {
        let bytes = self.to_bytes()?;
        let mut file = File::from(memfd_create("longhaul-errand", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(file.into())
    }

    pub(super) fn from_file(file: OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::from(file).take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes).ok_or_else(|| io::Error::other("the daemon sent no command"))
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut put = |part: &[&OsStr]| {
            if part.iter().any(|text| text.as_bytes().contains(&0)) {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            for text in part {
                bytes.extend_from_slice(text.as_bytes());
            }
            bytes.push(0);
            if bytes.len() > MAX_BYTES { Err(io::ErrorKind::ArgumentListTooLong.into()) } else { Ok(()) }
        };
        put(&[self.grace.as_millis().to_string().as_ref()])?;
        put(&[self.working_directory.as_os_str()])?;
        let run_as = self.run_as.map(|(uid, gid)| format!("{uid}:{gid}")).unwrap_or_default();
        put(&[run_as.as_ref()])?;
        put(&[self.own_paths.len().to_string().as_ref()])?;
        for path in &self.own_paths {
            put(&[path.as_os_str()])?;
        }
        put(&[self.argv.len().to_string().as_ref()])?;
        for word in &self.argv {
            put(&[word])?;
        }
        for (name, value) in &self.environment {
            put(&[name, "=".as_ref(), value])?;
        }
        Ok(bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let number = |part: &[u8]| std::str::from_utf8(part).ok()?.parse::<u64>().ok();
        let text = |part: &[u8]| OsString::from_vec(part.to_vec());
        let grace = Duration::from_millis(number(parts.next()?)?);
        let working_directory = PathBuf::from(text(parts.next()?));
        let run_as = match std::str::from_utf8(parts.next()?).ok()? {
            "" => None,
            both => {
                let (uid, gid) = both.split_once(':')?;
                Some((uid.parse().ok()?, gid.parse().ok()?))
            }
        };
        let mut list = || {
            let count = usize::try_from(number(parts.next()?)?).ok()?;
            let texts: Vec<OsString> = parts.by_ref().take(count).map(text).collect();
            (texts.len() == count).then_some(texts)
        };
        let own_paths = list()?.into_iter().map(PathBuf::from).collect();
        let argv = list()?;
        let variable = |part: &[u8]| {
            let at = part.iter().position(|byte| *byte == b'=')?;
            Some((text(&part[..at]), text(&part[at + 1..])))
        };
        let environment = parts.map(variable).collect::<Option<_>>()?;
        Some(Self { grace, working_directory, run_as, own_paths, argv, environment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(argv: &[&str], environment: &[(&str, &str)]) -> Errand {
        Errand {
            grace: Duration::from_secs(5),
            working_directory: PathBuf::from(OsString::from_vec(vec![b'/', 0xff])),
            run_as: Some((1_000, 0)),
            own_paths: vec![PathBuf::from("/srv/a b")],
            argv: argv.iter().map(OsString::from).collect(),
            environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }

    #[test]
    fn every_errand_is_read_as_it_was_written() {
        for errand in [
            errand(&["ls"], &[]),
            errand(&["printf", "", "a=b", "\n"], &[("PATH", "/bin:/usr/bin"), ("EMPTY", ""), ("A", "b=c")]),
            errand(&["cat", &"x".repeat(300_000)], &[("LARGE", &"y".repeat(300_000))]),
        ] {
            assert_eq!(Errand::from_file(errand.to_file().unwrap()).unwrap(), errand);
        }
    }

    #[test]
    fn what_would_be_read_as_something_else_is_not_written() {
        for errand in
            [errand(&["l\0s"], &[]), errand(&["ls"], &[("A\0", "")]), errand(&["ls"], &[("A", "\0B=1")])]
        {
            assert_eq!(errand.to_bytes().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        let long = errand(&[&"x".repeat(MAX_BYTES)], &[]);
        assert_eq!(long.to_bytes().unwrap_err().kind(), io::ErrorKind::ArgumentListTooLong);
    }

    #[test]
    fn half_an_errand_is_none() {
        let bytes = errand(&["a", "b"], &[]).to_bytes().unwrap();
        assert_eq!(Errand::from_bytes(&bytes[..bytes.len() - 2]), None);
        assert_eq!(Errand::from_bytes(b""), None);
    }
}
