//! The Landlock rules of a command, on the thread that starts it: inherited for good by everything that it starts.
//!
//! Whatever the rules allow, a process under them cannot mount or unmount, cannot trace or look into a process that is not under them (its
//! memory, environment, descriptors, directories), and cannot signal one where the kernel knows that (6.12 and later).
//!
//! Landlock has no right for calls that change only the metadata of a file (chmod, chown, utime, setxattr): rules do not keep those away.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::unavailable;

/// The newest rights that we know; older kernels have fewer.
const NEWEST: ABI = ABI::V7;
/// Entries beside the path to the data directory: more would cost more than most commands.
const MAX_ENTRIES: usize = 16_384;

/// For a command whose data directory is covered: every file that it sees.
pub(super) fn allow_everything_in_sight() -> io::Result<()> {
    // Without this right no file can be moved to another directory at all. What must not be truncated is out of sight.
    let rules = ruleset(AccessFs::Refer.into())?;
    enforce(allow(rules, Path::new("/"), AccessFs::from_all(NEWEST))?)
}

/// For a command that sees the protected directories: all that lies beside the path to them, and what it owns in them.
pub(super) fn allow_all_beside(protected: &[PathBuf], own: &[PathBuf]) -> io::Result<()> {
    // A kernel that knows no right to truncate lets everybody empty the store by its path.
    let mut rules = ruleset(AccessFs::Refer | AccessFs::Truncate)?;
    let above: BTreeSet<&Path> = protected.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let mut entries = 0;
    for &directory in &above {
        // A rule counts for all below it, so that names in the protected directories can be listed too, and nothing else.
        rules = allow(rules, directory, AccessFs::ReadDir.into())?;
        let Ok(listed) = fs::read_dir(directory) else { continue };
        for entry in listed.flatten() {
            let path = entry.path();
            let leads_there = above.contains(&*path) || protected.contains(&path);
            // A link has no rights of its own: what it leads to is judged where it is.
            if leads_there || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            entries += 1;
            if entries > MAX_ENTRIES {
                let told = format!("more than {MAX_ENTRIES} entries; move the data directory");
                return Err(unavailable("too much lies beside the data directory", told));
            }
            rules = allow(rules, &path, AccessFs::from_all(NEWEST))?;
        }
    }
    for path in own {
        rules = allow(rules, path, AccessFs::from_all(NEWEST))?;
    }
    enforce(rules)
}

/// Rules for every right that this kernel knows. It must know those that are needed.
fn ruleset(needed: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(needed)
        .and_then(|rules| {
            rules.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))
        })
        .and_then(|rules| rules.scope(Scope::Signal))
        .and_then(Ruleset::create);
    made.map_err(|error| unavailable("Landlock", error))
}

/// What cannot be opened, or is gone, needs no rule.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| unavailable("Landlock", error))
}

fn enforce(rules: RulesetCreated) -> io::Result<()> {
    // The limits of the command say whether it may gain privileges.
    let enforced = rules.no_new_privs(false).restrict_self();
    match enforced.map_err(|error| unavailable("Landlock", error))?.ruleset {
        // What is needed was required before; an older kernel lacks only the rest.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(unavailable("Landlock", "this kernel has none")),
    }
}
