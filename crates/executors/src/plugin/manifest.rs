//! The manifest of a plugin: `manifest.yaml` beside its entrypoint says what it is called, what is started and what it can be asked.
//!
//! What was optional in some era of Ductile is accepted with a warning; anything else that is wrong is told with its place, and the
//! plugin is not loaded. Whether the entrypoint can be trusted is not decided here, but in `trust.rs`.

mod file;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::super::http::LIMITS;
use config_file::Mistake;
use file::{CommandFile, FactOutputFile, ManifestFile, unknown_keys};

/// What the file is called.
pub const MANIFEST: &str = "manifest.yaml";
/// The one format of manifests that there is.
const SPEC: &str = "ductile.plugin";
const SPEC_VERSION: u64 = 1;
/// The one protocol that there is.
pub(super) const PROTOCOL: u64 = 2;
const MAX_NAME_BYTES: usize = 64;
const MAX_COMMANDS: usize = 100;
const MAX_FACT_OUTPUTS: usize = 100;
const MAX_FACT_TYPE_BYTES: usize = 256;

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its identity everywhere, whatever its directory is called.
    pub name: String,
    /// For people.
    pub version: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// What is started, seen from the directory of the manifest.
    pub entrypoint: String,
    /// Whether it says that two of it may run at the same time.
    pub concurrency_safe: bool,
    /// What it can be asked, as it lists it.
    pub commands: Vec<PluginCommand>,
    /// Which of its state is kept as facts.
    pub fact_outputs: Vec<FactOutput>,
    /// Keys of its configuration without which it does not work.
    pub required_keys: Vec<String>,
    /// Keys of its configuration that it understands besides.
    pub optional_keys: Vec<String>,
    /// What was accepted although it should be written otherwise.
    pub warnings: Vec<Mistake>,
    /// Where it says what may be wrong with what is around it.
    pub places: Places,
}

/// Where a manifest says something: line and column, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Its name.
    pub name: (u64, u64),
    /// What is started.
    pub entrypoint: (u64, u64),
    /// The keys that it needs; the name if it lists none.
    pub required_keys: (u64, u64),
}

/// One thing that a plugin can be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginCommand {
    /// What it is called.
    pub name: String,
    /// Whether it changes anything.
    pub effect: Effect,
    /// For people.
    pub description: Option<String>,
    /// What its payload looks like, as the manifest has it.
    pub input_schema: Option<Value>,
    /// What its events look like, as the manifest has it.
    pub output_schema: Option<Value>,
}

/// Whether a command changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Read,
    /// It may.
    Write,
}

impl Effect {
    /// The word of the manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// State of one command that is kept as a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactOutput {
    /// The command.
    pub command: String,
    /// What the fact is called.
    pub fact_type: String,
    /// What the state becomes.
    pub view: FactView,
}

/// What the state becomes when a fact is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactView {
    /// It stays as it is.
    Unchanged,
    /// It is the fact.
    Mirror,
}

impl Manifest {
    /// Reads the manifest of a plugin's directory.
    pub fn read(directory: &Path) -> Result<Self, Mistake> {
        let path = directory.join(MANIFEST);
        Self::parse(&path.display().to_string(), &LIMITS.text_of(&path)?)
    }

    /// Reads a text; `file` is what mistakes call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        let written: ManifestFile = LIMITS.parse(file, text)?;
        let mut reader = Reader { file, warnings: unknown_keys(file, text)? };
        reader.spec(&written)?;
        let name = reader.name(&written.name)?;
        reader.entrypoint(&written.entrypoint)?;
        let commands = reader.commands(&written)?;
        let fact_outputs = reader.fact_outputs(&written.fact_outputs, &commands)?;
        let place = |location: &Location| (location.line(), location.column());
        let keys = written.config_keys.as_ref();
        let places = Places {
            name: place(&written.name.defined),
            entrypoint: place(&written.entrypoint.defined),
            required_keys: place(keys.map_or(&written.name.defined, |keys| &keys.defined)),
        };
        let keys = written.config_keys.map(|keys| keys.value).unwrap_or_default();
        Ok(Self {
            name,
            version: written.version,
            description: written.description,
            entrypoint: written.entrypoint.value,
            concurrency_safe: written.concurrency_safe.unwrap_or(true),
            commands,
            fact_outputs,
            required_keys: keys.required,
            optional_keys: keys.optional,
            warnings: reader.warnings,
            places,
        })
    }

    /// What a manifest that cannot be read calls its plugin, as far as that can be seen.
    pub(super) fn name_in(text: &str) -> Option<String> {
        let written = text.lines().find_map(|line| line.strip_prefix("name:"))?;
        let name = written.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        is_plugin_name(name).then(|| name.to_owned())
    }

    /// The command of this name.
    pub fn command(&self, name: &str) -> Option<&PluginCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// The names of its commands, for people.
    pub fn command_names(&self) -> String {
        self.commands.iter().map(|command| command.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a plugin may be called so.
pub fn is_plugin_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

/// What the form alone does not show.
struct Reader<'f> {
    file: &'f str,
    warnings: Vec<Mistake>,
}

impl Reader<'_> {
    fn wrong(&self, location: &Location, told: impl Into<String>) -> Mistake {
        Mistake::at(self.file, location, told)
    }

    fn spec(&mut self, written: &ManifestFile) -> Result<(), Mistake> {
        match &written.manifest_spec {
            Some(spec) if spec.value != SPEC => {
                return Err(self.wrong(&spec.defined, format!("manifest_spec must be {SPEC:?}")));
            }
            Some(_) => {}
            None => self.missing(format!("manifest_spec: {SPEC}")),
        }
        match &written.manifest_version {
            Some(version) if version.value != SPEC_VERSION => {
                return Err(self.wrong(&version.defined, format!("manifest_version must be {SPEC_VERSION}")));
            }
            Some(_) => {}
            None => self.missing(format!("manifest_version: {SPEC_VERSION}")),
        }
        if written.protocol.value == PROTOCOL {
            return Ok(());
        }
        Err(self.wrong(&written.protocol.defined, format!("protocol must be {PROTOCOL}")))
    }

    fn missing(&mut self, line: String) {
        self.warnings.push(Mistake::somewhere(self.file, format!("should have the line `{line}`")));
    }

    fn name(&self, name: &Spanned<String>) -> Result<String, Mistake> {
        if is_plugin_name(&name.value) {
            return Ok(name.value.clone());
        }
        let told = format!("a name has 1 to {MAX_NAME_BYTES} letters, digits, `_` and `-`");
        Err(self.wrong(&name.defined, told))
    }

    fn entrypoint(&self, entrypoint: &Spanned<String>) -> Result<(), Mistake> {
        let path = &entrypoint.value;
        let wrong = |told: &str| Err(self.wrong(&entrypoint.defined, told));
        if path.trim().is_empty() || path.contains('\0') {
            return wrong("entrypoint must be the name of a file beside the manifest");
        }
        if path.contains("..") {
            return wrong("entrypoint may not contain `..`");
        }
        if Path::new(path).is_absolute() {
            return wrong("entrypoint must be relative to the directory of the manifest");
        }
        Ok(())
    }

    fn commands(&mut self, written: &ManifestFile) -> Result<Vec<PluginCommand>, Mistake> {
        let list = &written.commands;
        if list.value.is_empty() || list.value.len() > MAX_COMMANDS {
            let told = format!("commands must list 1 to {MAX_COMMANDS} commands");
            return Err(self.wrong(&list.defined, told));
        }
        let mut names = BTreeSet::new();
        let mut commands = Vec::with_capacity(list.value.len());
        for entry in &list.value {
            let command = self.command(entry)?;
            if !names.insert(command.name.clone()) {
                let told = format!("there are two commands named {:?}", command.name);
                return Err(self.wrong(&entry.defined, told));
            }
            commands.push(command);
        }
        Ok(commands)
    }

    fn command(&mut self, entry: &Spanned<CommandFile>) -> Result<PluginCommand, Mistake> {
        let written = match &entry.value {
            CommandFile::Name(name) => {
                let told =
                    format!("{name:?} should be {{ name: {name}, type: read | write }}; taken as write");
                self.warnings.push(self.wrong(&entry.defined, told));
                self.command_name(name, &entry.defined)?;
                return Ok(PluginCommand::named(name, Effect::Write));
            }
            CommandFile::Whole(written) => written,
        };
        self.command_name(&written.name.value, &written.name.defined)?;
        let effect = match &written.effect {
            Some(word) if word.value == "read" => Effect::Read,
            Some(word) if word.value == "write" => Effect::Write,
            Some(word) => return Err(self.wrong(&word.defined, "type must be read or write")),
            None => {
                let told = format!("the command {:?} needs a type: read or write", written.name.value);
                return Err(self.wrong(&written.name.defined, told));
            }
        };
        Ok(PluginCommand {
            description: written.description.clone(),
            input_schema: written.input_schema.clone(),
            output_schema: written.output_schema.clone(),
            ..PluginCommand::named(&written.name.value, effect)
        })
    }

    fn command_name(&self, name: &str, location: &Location) -> Result<(), Mistake> {
        if is_plugin_name(name) && name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Ok(());
        }
        let told = "the name of a command begins with a letter and has letters, digits, `_` and `-`";
        Err(self.wrong(location, told))
    }

    fn fact_outputs(
        &self,
        written: &[Spanned<FactOutputFile>],
        commands: &[PluginCommand],
    ) -> Result<Vec<FactOutput>, Mistake> {
        if let Some(first_over) = written.get(MAX_FACT_OUTPUTS) {
            let told = format!("there are more than {MAX_FACT_OUTPUTS} fact_outputs");
            return Err(self.wrong(&first_over.defined, told));
        }
        let fact_output = |rule: &Spanned<FactOutputFile>| {
            let wrong = |told: String| Err(self.wrong(&rule.defined, told));
            let FactOutputFile { when, from, fact_type, compatibility_view } = &rule.value;
            if !commands.iter().any(|command| command.name == when.command) {
                return wrong(format!("fact_outputs: {:?} is no command of this plugin", when.command));
            }
            if from != "state_updates" {
                return wrong("fact_outputs: from must be state_updates".to_owned());
            }
            let is_plain = !fact_type.is_empty() && !fact_type.chars().any(char::is_control);
            if !is_plain || fact_type.len() > MAX_FACT_TYPE_BYTES {
                return wrong(format!(
                    "fact_outputs: fact_type has 1 to {MAX_FACT_TYPE_BYTES} plain characters"
                ));
            }
            let view = match compatibility_view.as_deref() {
                None | Some("") => FactView::Unchanged,
                Some("mirror_object") => FactView::Mirror,
                Some(_) => {
                    return wrong("fact_outputs: compatibility_view must be mirror_object".to_owned());
                }
            };
            Ok(FactOutput { command: when.command.clone(), fact_type: fact_type.clone(), view })
        };
        written.iter().map(fact_output).collect()
    }
}

impl PluginCommand {
    fn named(name: &str, effect: Effect) -> Self {
        Self { name: name.to_owned(), effect, description: None, input_schema: None, output_schema: None }
    }
}

#[cfg(test)]
mod tests;
