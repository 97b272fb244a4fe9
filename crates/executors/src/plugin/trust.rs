//! Whether what a manifest names may be started: nobody but its owner may have put it there or be able to exchange it.
//!
//! Links are refused unless the operator allows them; where they lead is checked in any case.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::process::is_program;

/// Any of the three who may execute.
const EXECUTE_BITS: u32 = 0o111;
const WORLD_WRITE_BIT: u32 = 0o002;
/// What makes the entrypoint of a plugin that has to be built.
const BUILD_SCRIPT: &str = "build.sh";
/// The kernel reads no more of it either.
const MAX_FIRST_LINE_BYTES: u64 = 256;

/// Whether symbolic links may lead to plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "bool")]
pub enum Symlinks {
    /// They may not.
    #[default]
    Refused,
    /// They may, and it is told.
    Allowed,
}

impl From<bool> for Symlinks {
    fn from(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Refused }
    }
}

/// What may be started, and what is to be told of the way to it.
#[derive(Debug)]
pub(super) struct Trusted {
    /// The whole path, without links.
    pub(super) entrypoint: PathBuf,
    pub(super) warnings: Vec<String>,
}

/// Checks the way from a root over the plugin's directory to its entrypoint.
pub(super) fn trust(
    root: &Path,
    directory: &Path,
    entrypoint: &str,
    symlinks: Symlinks,
) -> Result<Trusted, String> {
    let mut warnings = Vec::new();
    for link in links(root, directory, entrypoint) {
        let told = format!("{} is a symbolic link", link.display());
        match symlinks {
            Symlinks::Refused => return Err(format!("{told}; `allow_symlinks: true` would allow it")),
            Symlinks::Allowed => warnings.push(told),
        }
    }
    let real_directory = real(directory)?;
    let build = directory.join(BUILD_SCRIPT);
    if !directory.join(entrypoint).exists() && build.is_file() {
        return Err(format!("the entrypoint {entrypoint:?} is not built yet; run {}", build.display()));
    }
    let real_entrypoint = real(&directory.join(entrypoint))?;
    if !real_entrypoint.starts_with(&real_directory) {
        return Err(format!("the entrypoint leads out of its directory, to {}", real_entrypoint.display()));
    }
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode());
    let unreadable = |error: std::io::Error| error.to_string();
    if mode(&real_directory).map_err(unreadable)? & WORLD_WRITE_BIT != 0 {
        return Err("its directory may be written by everybody; `chmod o-w` it".to_owned());
    }
    if !real_entrypoint.is_file() {
        return Err(format!("the entrypoint {entrypoint:?} is not a file"));
    }
    if mode(&real_entrypoint).map_err(unreadable)? & EXECUTE_BITS == 0 {
        return Err(format!("the entrypoint {entrypoint:?} cannot be executed; `chmod +x` it"));
    }
    Ok(Trusted { entrypoint: real_entrypoint, warnings })
}

/// Why what was found cannot be started here, as far as that can be seen: its first job would find out.
pub fn cannot_start(entrypoint: &Path) -> Option<String> {
    let line = first_line(entrypoint)?;
    let mut words = line.split_ascii_whitespace();
    let interpreter = Path::new(words.next()?);
    if !interpreter.is_absolute() {
        return None;
    }
    if !interpreter.exists() {
        return Some(format!("the entrypoint is to be run by {}, which is not there", interpreter.display()));
    }
    if !interpreter.ends_with("env") {
        return None;
    }
    let program = words.find(|word| *word != "-S")?;
    let is_plain = !program.starts_with('-') && !program.contains(['=', '/']);
    let is_missing = is_plain && !is_in_path(program);
    is_missing
        .then(|| format!("the entrypoint is to be run by {program:?}, which is not found in PATH ({line})"))
}

/// Whether a program is where the daemon, and with it its plugins, look for programs.
fn is_in_path(program: &str) -> bool {
    // Without any, the system has one of its own.
    std::env::var_os("PATH")
        .is_none_or(|path| std::env::split_paths(&path).any(|dir| is_program(&dir.join(program))))
}

/// What a script says that it is run by; none if it is no script.
pub(super) fn first_line(entrypoint: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(entrypoint).ok()?.take(MAX_FIRST_LINE_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

fn real(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

/// The links on the way, the root itself included. What is above the root is the operator's.
fn links(root: &Path, directory: &Path, entrypoint: &str) -> Vec<PathBuf> {
    let below = directory.strip_prefix(root).unwrap_or(Path::new(""));
    let mut at = root.to_owned();
    let mut links = Vec::new();
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if is_link(&at) {
        links.push(at.clone());
    }
    for part in below.components().chain(Path::new(entrypoint).components()) {
        at.push(part);
        if is_link(&at) {
            links.push(at.clone());
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn given() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let plugin = root.path().join("echo");
        fs::create_dir(&plugin).unwrap();
        fs::write(plugin.join("run.sh"), "#!/bin/sh\n").unwrap();
        chmod(&plugin.join("run.sh"), 0o755);
        chmod(&plugin, 0o755);
        root
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(root: &Path, entrypoint: &str, symlinks: Symlinks) -> String {
        trust(root, &root.join("echo"), entrypoint, symlinks).unwrap_err()
    }

    #[test]
    fn plain_executable_file_in_its_directory_is_trusted() {
        let root = given();
        let trusted = trust(root.path(), &root.path().join("echo"), "run.sh", Symlinks::Refused).unwrap();
        assert!(trusted.entrypoint.is_absolute());
        assert_eq!(trusted.warnings, [""; 0]);
    }

    #[test]
    fn file_that_cannot_be_executed_or_is_not_there_is_refused() {
        let root = given();
        chmod(&root.path().join("echo/run.sh"), 0o644);
        assert!(refusal(root.path(), "run.sh", Symlinks::Refused).contains("chmod +x"));
        assert!(refusal(root.path(), "gone.sh", Symlinks::Refused).contains("gone.sh"));
        fs::create_dir(root.path().join("echo/bin")).unwrap();
        assert!(refusal(root.path(), "bin", Symlinks::Refused).contains("is not a file"));
    }

    #[test]
    fn script_whose_interpreter_is_not_there_cannot_be_started_also_when_env_is_to_find_it() {
        let root = given();
        let script = root.path().join("echo/run.sh");
        for (line, told) in [
            ("#!/bin/sh", None),
            ("#!/usr/bin/env sh", None),
            ("#!/usr/bin/env -S sh -e", None),
            ("#!/usr/bin/env A=b no-such-program", None),
            ("no script", None),
            ("#! /no/such/python -u", Some("run by /no/such/python, which is not there")),
            ("#!/usr/bin/env no-such-program", Some("\"no-such-program\", which is not found in PATH")),
            ("#!/usr/bin/env -S no-such-program -u", Some("\"no-such-program\", which is not found in PATH")),
        ] {
            fs::write(&script, format!("{line}\necho\n")).unwrap();
            let said = cannot_start(&script);
            assert_eq!(said.is_some(), told.is_some(), "{line}: {said:?}");
            assert!(said.unwrap_or_default().contains(told.unwrap_or_default()), "{line}");
        }
    }

    #[test]
    fn directory_that_everybody_may_write_is_refused() {
        let root = given();
        chmod(&root.path().join("echo"), 0o777);
        assert!(refusal(root.path(), "run.sh", Symlinks::Refused).contains("written by everybody"));
    }

    #[test]
    fn link_is_refused_unless_allowed_and_never_leads_out() {
        let root = given();
        let plugin = root.path().join("echo");
        symlink(plugin.join("run.sh"), plugin.join("link.sh")).unwrap();
        assert!(refusal(root.path(), "link.sh", Symlinks::Refused).contains("is a symbolic link"));
        let trusted = trust(root.path(), &plugin, "link.sh", Symlinks::Allowed).unwrap();
        assert_eq!(trusted.warnings.len(), 1);
        assert!(trusted.entrypoint.ends_with("run.sh"));
        symlink("/bin/sh", plugin.join("out.sh")).unwrap();
        assert!(refusal(root.path(), "out.sh", Symlinks::Allowed).contains("leads out"));
    }

    #[test]
    fn root_that_is_a_link_is_refused_unless_allowed() {
        let root = given();
        let beside = tempfile::tempdir().unwrap();
        let link = beside.path().join("plugins");
        symlink(root.path(), &link).unwrap();
        assert!(refusal(&link, "run.sh", Symlinks::Refused).contains("is a symbolic link"));
        assert!(trust(&link, &link.join("echo"), "run.sh", Symlinks::Allowed).is_ok());
    }
}
