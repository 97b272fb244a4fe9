//! Which plugins there are: roots are walked in order, and a directory with a manifest is a plugin.
//!
//! A root that is not there is a mistake of the operator; a plugin that cannot be used is told and left out, and the others are found
//! all the same. What lies below a plugin is its own and is not looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::{MANIFEST, Manifest};
use super::trust::{Symlinks, Trusted, trust};
use config_file::Mistake;

/// Directories below a root.
const MAX_DEPTH: usize = 8;
/// Directories of one root that are looked into.
const MAX_DIRECTORIES: usize = 10_000;
const MAX_PLUGINS: usize = 1_000;
/// Entries of one directory.
const MAX_ENTRIES: usize = 10_000;
/// What entrypoints are usually called.
const USUAL_ENTRYPOINTS: [&str; 8] =
    ["run.py", "run.sh", "main.go", "main.py", "index.js", "index.ts", "run.js", "run.ts"];

/// A plugin that may be started.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Where it is.
    pub directory: PathBuf,
    /// What is started: a whole path without links.
    pub entrypoint: PathBuf,
}

/// What was found, and what was left out.
#[derive(Debug, Default)]
pub struct Discovered {
    /// By name.
    pub plugins: BTreeMap<String, Found>,
    /// What cannot be used, and why.
    pub left_out: Vec<Mistake>,
    /// Why a plugin of this name cannot be used; none if another one of the name can.
    pub names_left_out: BTreeMap<String, Mistake>,
    /// What is to be told besides.
    pub warnings: Vec<Mistake>,
}

impl Discovered {
    /// Walks one more root. What was found before keeps its name.
    pub fn add_root(&mut self, root: &Path, symlinks: Symlinks) -> Result<(), Mistake> {
        if !root.is_dir() {
            return Err(Mistake::somewhere(root.display(), "is not a directory"));
        }
        let mut walk = Walk { root, symlinks, looked_into: 0, discovered: self };
        walk.directory(root, 0);
        Ok(())
    }

    fn warn(&mut self, at: &Path, told: impl Into<String>) {
        self.warnings.push(Mistake::somewhere(at.display(), told));
    }

    fn leave_out(&mut self, at: &Path, told: impl Into<String>) {
        self.left_out.push(Mistake::somewhere(at.display(), told));
    }
}

/// The manifest of one directory and what it names, if it may be started.
pub fn look_at(root: &Path, directory: &Path, symlinks: Symlinks) -> Result<Found, Mistake> {
    let mut manifest = Manifest::read(directory)?;
    let file = directory.join(MANIFEST);
    let place = Some(manifest.places.entrypoint);
    let at = |told: String| Mistake { file: file.display().to_string(), place, told };
    let Trusted { entrypoint, warnings } =
        trust(root, directory, &manifest.entrypoint, symlinks).map_err(at)?;
    manifest.warnings.extend(warnings.into_iter().map(at));
    Ok(Found { manifest, directory: directory.to_owned(), entrypoint })
}

/// What the plugin of a directory is called, although it cannot be used.
fn name_of(directory: &Path) -> String {
    let written = fs::read_to_string(directory.join(MANIFEST)).ok();
    let of_directory = || directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    written.as_deref().and_then(Manifest::name_in).unwrap_or_else(of_directory)
}

struct Walk<'a> {
    root: &'a Path,
    symlinks: Symlinks,
    looked_into: usize,
    discovered: &'a mut Discovered,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) {
        self.looked_into += 1;
        if self.looked_into > MAX_DIRECTORIES {
            if self.looked_into == MAX_DIRECTORIES + 1 {
                let told = format!("has more than {MAX_DIRECTORIES} directories; the rest is not looked at");
                self.discovered.warn(self.root, told);
            }
            return;
        }
        if directory.join(MANIFEST).is_file() {
            return self.plugin(directory);
        }
        if depth > 0
            && let Some(name) = USUAL_ENTRYPOINTS.iter().find(|name| directory.join(name).is_file())
        {
            self.discovered.warn(directory, format!("has a {name} but no {MANIFEST}; it is no plugin"));
        }
        if depth == MAX_DEPTH {
            return;
        }
        for below in self.below(directory) {
            self.directory(&below, depth + 1);
        }
    }

    /// The directories in one, by name: what is found first must not depend on the disk.
    fn below(&mut self, directory: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.discovered.warn(directory, format!("cannot be read: {error}"));
                return Vec::new();
            }
        };
        let mut below: Vec<PathBuf> = entries
            .take(MAX_ENTRIES)
            .filter_map(Result::ok)
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        below.sort();
        below.retain(|path| self.may_follow(path));
        below
    }

    /// A link that is not followed is told if a plugin would have been there.
    fn may_follow(&mut self, path: &Path) -> bool {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if !is_link || self.symlinks == Symlinks::Allowed {
            return true;
        }
        if path.join(MANIFEST).is_file() {
            let told = "is a symbolic link; `allow_symlinks: true` would allow it";
            self.discovered.leave_out(path, told);
        }
        false
    }

    fn plugin(&mut self, directory: &Path) {
        let found = match look_at(self.root, directory, self.symlinks) {
            Ok(found) => found,
            Err(mistake) => {
                let names = &mut self.discovered.names_left_out;
                names.entry(name_of(directory)).or_insert_with(|| mistake.clone());
                return self.discovered.left_out.push(mistake);
            }
        };
        self.discovered.warnings.extend(found.manifest.warnings.iter().cloned());
        let name = found.manifest.name.clone();
        if let Some(first) = self.discovered.plugins.get(&name) {
            let told = format!("{name:?} is the plugin in {} already", first.directory.display());
            let file = directory.join(MANIFEST).display().to_string();
            let place = Some(found.manifest.places.name);
            return self.discovered.left_out.push(Mistake { file, place, told });
        }
        if self.discovered.plugins.len() == MAX_PLUGINS {
            let told = format!("there are {MAX_PLUGINS} plugins already; this one is left out");
            return self.discovered.leave_out(directory, told);
        }
        self.discovered.plugins.insert(name, found);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(directory: &Path, name: &str) {
        fs::create_dir_all(directory).unwrap();
        let manifest = format!(
            "manifest_spec: ductile.plugin\nmanifest_version: 1\nname: {name}\nprotocol: 2\n\
             entrypoint: run.sh\ncommands: [{{ name: poll, type: read }}]\n"
        );
        fs::write(directory.join(MANIFEST), manifest).unwrap();
        fs::write(directory.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(directory.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn discover(roots: &[&Path]) -> Discovered {
        let mut discovered = Discovered::default();
        for root in roots {
            discovered.add_root(root, Symlinks::Refused).unwrap();
        }
        discovered
    }

    fn told(discovered: &Discovered) -> Vec<String> {
        discovered.left_out.iter().chain(&discovered.warnings).map(ToString::to_string).collect()
    }

    #[test]
    fn plugins_are_found_at_any_depth_and_a_bad_one_costs_only_itself() {
        let root = tempfile::tempdir().unwrap();
        put(&root.path().join("a/b/deep"), "deep");
        put(&root.path().join("flat"), "flat");
        put(&root.path().join("broken"), "not a name");
        let discovered = discover(&[root.path()]);
        assert_eq!(discovered.plugins.keys().collect::<Vec<_>>(), ["deep", "flat"]);
        let told = told(&discovered);
        assert!(
            told[0].ends_with("broken/manifest.yaml:3:7: a name has 1 to 64 letters, digits, `_` and `-`"),
            "{told:?}"
        );
    }

    #[test]
    fn of_two_plugins_with_one_name_the_first_is_taken_and_the_second_told() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(&first.path().join("z"), "echo");
        put(&second.path().join("a"), "echo");
        let discovered = discover(&[first.path(), second.path()]);
        assert!(discovered.plugins["echo"].directory.starts_with(first.path()));
        let told = told(&discovered);
        assert!(told.len() == 1 && told[0].contains("\"echo\" is the plugin in"), "{told:?}");
    }

    #[test]
    fn root_that_is_not_there_is_a_mistake() {
        let mistake = Discovered::default().add_root(Path::new("/no/such"), Symlinks::Refused).unwrap_err();
        assert_eq!(mistake.to_string(), "/no/such: is not a directory");
    }

    #[test]
    fn directory_with_a_usual_entrypoint_and_no_manifest_is_told() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("half")).unwrap();
        fs::write(root.path().join("half/run.py"), "").unwrap();
        put(&root.path().join("whole"), "whole");
        fs::create_dir(root.path().join("whole/src")).unwrap();
        fs::write(root.path().join("whole/src/main.py"), "").unwrap();
        let told = told(&discover(&[root.path()]));
        assert!(
            told.len() == 1 && told[0].ends_with("half: has a run.py but no manifest.yaml; it is no plugin"),
            "{told:?}"
        );
    }

    #[test]
    fn link_to_a_plugin_is_not_followed_and_a_circle_of_links_ends() {
        let (root, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(&beside.path().join("echo"), "echo");
        symlink(beside.path().join("echo"), root.path().join("echo")).unwrap();
        symlink(root.path(), root.path().join("circle")).unwrap();
        let refused = discover(&[root.path()]);
        assert!(refused.plugins.is_empty() && told(&refused)[0].contains("is a symbolic link"));
        let mut allowed = Discovered::default();
        allowed.add_root(root.path(), Symlinks::Allowed).unwrap();
        assert_eq!(allowed.plugins.keys().collect::<Vec<_>>(), ["echo"]);
    }
}
