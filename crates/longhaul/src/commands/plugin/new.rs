//! `longhaul plugin new`: a plugin to begin with, which can be used as it is.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use executors::plugin::{MANIFEST, is_plugin_name};

use crate::builtin;
use crate::config::TAKEN;
use crate::exit::Failed;
use crate::show::say;

const MANIFEST_TEXT: &str = include_str!("scaffold/manifest.yaml");
const BASH: &str = include_str!("scaffold/run.sh");
const PYTHON: &str = include_str!("scaffold/run.py");
const RUST: &str = include_str!("scaffold/main.rs");
const BUILD: &str = include_str!("scaffold/build.sh");
/// What stands for the name in the texts above.
const NAME: &str = "PLUGIN_NAME";
const ENTRYPOINT: &str = "PLUGIN_ENTRYPOINT";
/// Whoever may write here could exchange what is started.
const DIRECTORY_MODE: u32 = 0o755;
const PROGRAM_MODE: u32 = 0o755;

const EXAMPLES: &str = "Examples:
  longhaul plugin new greet --lang python
  longhaul plugin new gauge --lang rust --dir plugins      built with rustc alone, no cargo

The directory is made, and must not be there yet.";

/// Make a plugin to begin with
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct New {
    /// Its name: letters, digits, `_` and `-`
    name: String,
    /// What it is written in
    #[arg(long, value_enum)]
    lang: Language,
    /// Where its directory is made
    #[arg(long, default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    Bash,
    Python,
    Rust,
}

pub fn run(new: &New) -> Result<()> {
    let name = &new.name;
    if !is_plugin_name(name) {
        let told = format!("{name:?}: a name has letters, digits, `_` and `-`, 64 at most");
        return Err(Failed::usage(told).into());
    }
    if builtin::NAMES.contains(&name.as_str()) {
        return Err(Failed::usage(format!("{name:?}: {TAKEN}")).into());
    }
    let directory = new.dir.join(name);
    fs::create_dir_all(&new.dir).with_context(|| format!("cannot make {}", new.dir.display()))?;
    fs::DirBuilder::new()
        .mode(DIRECTORY_MODE)
        .create(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let (entrypoint, script) = match new.lang {
        Language::Bash => ("run.sh", Some(BASH)),
        Language::Python => ("run.py", Some(PYTHON)),
        Language::Rust => ("run", None),
    };
    let manifest = MANIFEST_TEXT.replace(NAME, name).replace(ENTRYPOINT, entrypoint);
    write(&directory.join(MANIFEST), &manifest)?;
    if let Some(script) = script {
        write_program(&directory.join(entrypoint), script)?;
    } else {
        write(&directory.join("main.rs"), RUST)?;
        write_program(&directory.join("build.sh"), BUILD)?;
        build(&directory);
    }
    let at = directory.display();
    say(format_args!("made {at}\nnext: longhaul plugin check {at}"));
    Ok(())
}

/// Without a compiler here, it is built later.
fn build(directory: &Path) {
    let built = Command::new("./build.sh").current_dir(directory).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!(
            "warning: it is not built yet; run {}/build.sh where there is a rustc",
            directory.display()
        );
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(PROGRAM_MODE))
        .with_context(|| format!("cannot make {} executable", path.display()))
}
