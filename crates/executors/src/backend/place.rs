//! Where a job of a backend is done, and how: the folder itself, the words of the command, how long the command is there.

use std::path::{Component, Path, PathBuf};

use domain::job::JobSpec;
use serde::Deserialize;

use super::BackendSettings;
use engine::Unfit;

/// Where one job is done, and how.
pub(super) struct Place {
    pub folder: PathBuf,
    pub profile: Option<String>,
    pub argv: Vec<String>,
    pub scope: Scope,
}

/// How long a command is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// For one attempt.
    PerFire,
    /// For all jobs of its folder.
    Persistent,
}

impl BackendSettings {
    /// The place of such a job, or why there is none.
    pub(super) fn place(&self, spec: &JobSpec) -> Result<Place, Unfit> {
        let path = spec
            .path
            .as_deref()
            .ok_or_else(|| unfit("path", "path_missing", "name the folder to work in"))?;
        let folder = self.folder(Path::new(path))?;
        let mut argv = self.argv.clone();
        let (profile, scope) = asked_for(spec)?;
        if let Some(profile) = &profile {
            let Some(more) = self.profiles.get(profile) else {
                let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
                let told = format!("there is no profile {profile:?}; there are: {}", known.join(", "));
                return Err(unfit("profile", "unknown_profile", told));
            };
            argv.extend(more.iter().cloned());
        }
        self.check_program(argv.first().map_or("", String::as_str), &folder)?;
        Ok(Place { folder, profile, argv, scope })
    }

    /// The folder itself, wherever links lead.
    fn folder(&self, path: &Path) -> Result<PathBuf, Unfit> {
        let shown = path.display();
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(unfit(
                "path",
                "path_not_allowed",
                format!("{shown} goes up; name the folder itself"),
            ));
        }
        if !path.is_absolute() {
            return Err(unfit("path", "path_not_absolute", format!("{shown} does not begin at the root")));
        }
        // Whether it is there is not told of what is outside.
        let outside =
            || unfit("path", "path_not_allowed", format!("{shown} is not in a folder that jobs may name"));
        let Ok(folder) = path.canonicalize() else {
            let allowed = self.roots.iter().any(|root| path.starts_with(root));
            let missing = || unfit("path", "path_missing", format!("{shown} is not there"));
            return Err(if allowed { missing() } else { outside() });
        };
        let mut roots = self.roots.iter().filter_map(|root| root.canonicalize().ok());
        if !roots.any(|root| folder.starts_with(root)) {
            return Err(outside());
        }
        if !folder.is_dir() {
            return Err(unfit("path", "path_missing", format!("{shown} is no folder")));
        }
        Ok(folder)
    }

    fn check_program(&self, program: &str, folder: &Path) -> Result<(), Unfit> {
        if self.process.finds(program, folder) {
            return Ok(());
        }
        let search = self.process.search_path();
        let told = format!("the program {program:?} is not on the path {}", search.display());
        Err(unfit("backend", "program_not_found", told))
    }
}

/// The named extra arguments that a job asks for, and how long its command stays.
fn asked_for(spec: &JobSpec) -> Result<(Option<String>, Scope), Unfit> {
    #[derive(Default, Deserialize)]
    struct Execution {
        #[serde(default)]
        target: Target,
        process_scope: Option<String>,
    }
    #[derive(Default, Deserialize)]
    struct Target {
        profile: Option<String>,
    }
    let execution: Execution = match &spec.execution {
        Some(text) => serde_json::from_str(text.as_str())
            .map_err(|_| unfit("profile", "invalid_value", "the profile is a name"))?,
        None => Execution::default(),
    };
    let scope = match execution.process_scope.as_deref() {
        Some("persistent") => Scope::Persistent,
        Some(_) | None => Scope::PerFire,
    };
    Ok((execution.target.profile, scope))
}

fn unfit(field: &'static str, code: &'static str, told: impl Into<String>) -> Unfit {
    Unfit { field, code, told: told.into() }
}
