//! What commands are kept away from: the data directory, and what links directly in it lead to. The store may be on another disk that way.
//!
//! Links are followed once, when the daemon starts and its store is open. Links deeper in the data directory are not looked for.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::SandboxMethod;

/// The store, as it is named in the data directory.
const STORE_FILE: &str = "longhaul.sqlite";
/// What belongs to the store lies beside the file itself, not beside the link.
const STORE_SUFFIXES: [&str; 5] = ["-wal", "-shm", "-journal", ".mark", ".lock"];
/// On the top directory of a disk there is always this.
const LOST_AND_FOUND: &str = "lost+found";
/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 16_384;

/// Full paths that commands must not reach.
#[derive(Debug, Default)]
pub(in super::super) struct ProtectedPaths {
    /// Directories, and files that links lead to. Files beside the store need not exist.
    pub paths: Vec<PathBuf>,
    /// What no method protects.
    gaps: Vec<String>,
    /// What a method that covers files does not protect.
    cover_gaps: Vec<String>,
}

impl ProtectedPaths {
    /// The data directory by its full path, these directories that belong to it, and what its links lead to.
    pub(in super::super) fn resolve(data_dir: &Path, parts: &[PathBuf]) -> Self {
        let parts = parts.iter().filter_map(|part| part.canonicalize().ok());
        let paths = std::iter::once(data_dir.to_owned()).chain(parts).collect();
        let mut protected = Self { paths, ..Self::default() };
        match links_in(data_dir) {
            Ok(links) => protected.follow(data_dir, &links),
            Err(error) => {
                protected.gaps.push(format!("links in {} are unknown: {error}", data_dir.display()));
            }
        }
        protected
    }

    /// What stays within the reach of commands although it should not, in words for the operator.
    pub(in super::super) fn gaps(self, method: SandboxMethod) -> Vec<String> {
        match method {
            SandboxMethod::Cover | SandboxMethod::UserNamespace => [self.gaps, self.cover_gaps].concat(),
            SandboxMethod::Siblings => self.gaps,
        }
    }

    fn follow(&mut self, data_dir: &Path, links: &[OsString]) {
        let mut store = None;
        for name in links {
            let link = data_dir.join(name);
            let target = match link.canonicalize() {
                Ok(target) => target,
                // Nothing is there, and the daemon creates nothing through a link but its store, which is open by now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.gaps.push(format!("the link {} cannot be followed: {error}", link.display()));
                    continue;
                }
            };
            if data_dir.starts_with(&target) {
                let (link, target) = (link.display(), target.display());
                self.gaps
                    .push(format!("{link} leads to {target}, which holds the data directory; remove it"));
                continue;
            }
            // A device, a pipe or a socket holds no data, and commands may need it.
            if !target.is_file() && !target.is_dir() {
                continue;
            }
            if name == STORE_FILE && target.is_file() {
                self.paths.extend(STORE_SUFFIXES.map(|suffix| beside(&target, suffix)));
                store = Some(target.clone());
            }
            self.paths.push(target);
        }
        if let Some(store) = store {
            self.protect_directory_of(&store, data_dir);
        }
    }

    /// A covered file can be replaced by the daemon, and new files can come beside it, such as a journal that SQLite would believe. Only a
    /// covered directory keeps commands away from those.
    fn protect_directory_of(&mut self, store: &Path, data_dir: &Path) {
        let Some(directory) = store.parent() else { return };
        if !data_dir.starts_with(directory) && self.holds_nothing_else(directory, store) {
            self.paths.push(directory.to_owned());
            return;
        }
        self.cover_gaps.push(format!(
            "commands can create files beside the store {}, because its directory holds other files; move it to a directory of its own",
            store.display()
        ));
    }

    fn holds_nothing_else(&self, directory: &Path, store: &Path) -> bool {
        let Ok(listed) = fs::read_dir(directory) else { return false };
        let prefix = store.file_name().unwrap_or_default().as_encoded_bytes();
        let mut listed = listed.take(MAX_ENTRIES);
        listed.all(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                let is_of_store = name.as_encoded_bytes().starts_with(prefix) || name == LOST_AND_FOUND;
                is_of_store || self.paths.contains(&entry.path())
            })
        })
    }
}

/// Whether a protected path is only a file beside the store, which need not be there.
pub(super) fn may_be_missing(path: &Path, protected: &[PathBuf]) -> bool {
    let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    STORE_SUFFIXES.iter().any(|suffix| {
        name.ends_with(suffix.as_bytes()) && protected.iter().any(|store| beside(store, suffix) == path)
    })
}

fn links_in(directory: &Path) -> io::Result<Vec<OsString>> {
    let mut links = Vec::new();
    for (count, entry) in fs::read_dir(directory)?.enumerate() {
        if count >= MAX_ENTRIES {
            return Err(io::Error::other(format!("more than {MAX_ENTRIES} entries")));
        }
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            links.push(entry.file_name());
        }
    }
    Ok(links)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Disk {
        _dir: tempfile::TempDir,
        data: PathBuf,
        other: PathBuf,
    }

    impl Disk {
        /// A data directory, and another with these files.
        fn with(files: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().canonicalize().unwrap();
            let [data, other] = ["data", "other"].map(|name| path.join(name));
            fs::create_dir(&data).unwrap();
            fs::create_dir(&other).unwrap();
            for file in files {
                fs::write(other.join(file), "").unwrap();
            }
            Self { _dir: dir, data, other }
        }

        fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
            symlink(self.other.join(target), self.data.join(name)).unwrap();
            self
        }

        fn resolve(&self) -> ProtectedPaths {
            ProtectedPaths::resolve(&self.data, &[])
        }
    }

    fn gaps(disk: &Disk) -> [usize; 2] {
        [SandboxMethod::Cover, SandboxMethod::Siblings].map(|method| disk.resolve().gaps(method).len())
    }

    #[test]
    fn linked_store_alone_in_its_directory_protects_that() {
        let disk = Disk::with(&["s.sqlite", "s.sqlite-wal", "s.sqlite.lock", "lost+found"]);
        disk.link(STORE_FILE, "s.sqlite");
        assert!(disk.resolve().paths.contains(&disk.other));
        assert_eq!(gaps(&disk), [0, 0]);
    }

    #[test]
    fn linked_store_among_other_files_is_protected_by_name() {
        let disk = Disk::with(&["s.sqlite", "other"]);
        disk.link(STORE_FILE, "s.sqlite");
        let paths = disk.resolve().paths;
        for name in ["s.sqlite", "s.sqlite-wal", "s.sqlite-shm", "s.sqlite.mark", "s.sqlite.lock"] {
            assert!(paths.contains(&disk.other.join(name)), "{name}");
        }
        assert!(!paths.contains(&disk.other) && !paths.contains(&disk.other.join("other")));
        assert_eq!(gaps(&disk), [1, 0], "Landlock lets nothing new come beside it");
        assert!(may_be_missing(&disk.other.join("s.sqlite-shm"), &paths));
        assert!(!may_be_missing(&disk.other.join("s.sqlite"), &paths));
        assert!(!may_be_missing(&disk.other.join("other-shm"), &paths));
    }

    #[test]
    fn linked_key_and_directory_are_protected_themselves() {
        let disk = Disk::with(&["key", "other"]);
        fs::create_dir(disk.other.join("logs")).unwrap();
        disk.link("callback.key", "key").link("logs", "logs");
        let protected = disk.resolve().paths;
        assert_eq!(protected.len(), 3, "{protected:?}");
        assert!(protected.contains(&disk.other.join("key")) && protected.contains(&disk.other.join("logs")));
        assert_eq!(gaps(&disk), [0, 0]);
    }

    #[test]
    fn link_to_a_device_or_to_nothing_protects_nothing() {
        let disk = Disk::with(&[]);
        disk.link("log", "/dev/null").link("admin.token", "missing");
        assert_eq!(disk.resolve().paths, std::slice::from_ref(&disk.data));
        assert_eq!(gaps(&disk), [0, 0]);
    }

    #[test]
    fn link_to_a_directory_above_is_a_gap() {
        let disk = Disk::with(&[]);
        disk.link("up", "/").link("loop", disk.data.join("loop"));
        assert_eq!(disk.resolve().paths, std::slice::from_ref(&disk.data));
        assert_eq!(gaps(&disk), [2, 2]);
    }
}
