//! Reads files of pipelines. A pipeline with a mistake is left out and the mistake is told; all others are there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use config_file::Mistake;

use super::compile::{Callable, compile};
use super::read::{self, Read};
use super::written::{LIMITS, What, Written};
use super::{Pipeline, Trigger};

/// Files, with those of directories.
const MAX_FILES: usize = 1_000;
/// Pipelines in all files.
pub const MAX_PIPELINES: usize = 1_000;
/// Pipelines that one event or one end starts.
pub const MAX_PER_TRIGGER: usize = 100;

/// What could be read, and what is wrong with the rest.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The pipelines that can be used, in the order of their files.
    pub pipelines: Vec<Pipeline>,
    /// What is wrong, in the order of the files and of their lines.
    pub mistakes: Vec<Mistake>,
}

/// Reads files, and of directories every `*.yaml` and `*.yml` that lies directly in them.
pub fn load(paths: &[PathBuf]) -> Loaded {
    let mut mistakes = Vec::new();
    let mut texts = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let unreadable =
            |error: io::Error| Mistake::somewhere(path.display(), format!("cannot be read: {error}"));
        let files = if path.is_dir() { files_in(path).map_err(unreadable) } else { Ok(vec![path.clone()]) };
        let files = files.unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            Vec::new()
        });
        for file in files {
            // One file may be named itself and lie in a directory that is named.
            if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
                continue;
            }
            if seen.len() > MAX_FILES {
                mistakes.push(Mistake::somewhere(
                    file.display(),
                    format!("there are more than {MAX_FILES} files"),
                ));
                break;
            }
            match LIMITS.text_of(&file) {
                Ok(text) => texts.push((file.display().to_string(), text)),
                Err(mistake) => mistakes.push(mistake),
            }
        }
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let mut loaded = parse(&texts);
    loaded.mistakes.splice(..0, mistakes);
    loaded
}

fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads texts; each comes with the name that mistakes call it by.
pub fn parse(texts: &[(&str, &str)]) -> Loaded {
    let mut mistakes = Vec::new();
    let mut read = Vec::new();
    for (file, text) in texts {
        match Written::parse(file, text) {
            Ok(written) => read_file(file, &written, &mut read, &mut mistakes),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    mistakes.extend(read.iter_mut().flat_map(|read| std::mem::take(&mut read.mistakes)));
    let callable = callable(&read, &mut mistakes);
    let usable = read.iter().filter_map(|read| read.definition.as_ref());
    let mut pipelines = Vec::new();
    let mut started: BTreeMap<&Trigger, usize> = BTreeMap::new();
    for definition in usable {
        let Pipeline { name, trigger, written, .. } = &definition.pipeline;
        if callable.get(name.as_str()).is_none_or(Option::is_none) {
            continue;
        }
        let already = started.entry(trigger).or_default();
        *already += 1;
        if *already > MAX_PER_TRIGGER {
            let told = format!("more than {MAX_PER_TRIGGER} pipelines are {trigger}");
            mistakes.push(Mistake::at(&written.file, &definition.at, told));
            continue;
        }
        match compile(definition, &callable) {
            Ok(pipeline) => pipelines.push(pipeline),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    let order = |file: &str| texts.iter().position(|(name, _)| *name == file);
    mistakes.sort_by_key(|mistake| (order(&mistake.file), mistake.place));
    Loaded { pipelines, mistakes }
}

fn read_file(file: &str, written: &Written, read: &mut Vec<Read>, mistakes: &mut Vec<Mistake>) {
    let (keys, unknown) = match written.keys_and_unknown(&["pipelines", "carry"]) {
        Ok(found) => found,
        Err(wrong) => return mistakes.push(wrong.in_file(file)),
    };
    let no_list = |written: &Written, told: &str| written.wrong(told).in_file(file);
    let items = match keys.find("pipelines") {
        Some(Written { what: What::List(items), .. }) => items,
        Some(other) => return mistakes.push(no_list(other, "a list is expected here, as [one, two]")),
        None if unknown.is_empty() => {
            return mistakes.push(no_list(written, "the key \"pipelines\" is missing"));
        }
        None => &Vec::new(),
    };
    mistakes.extend(unknown.into_iter().map(|wrong| wrong.in_file(file)));
    let carry = match keys.find("carry").map(read::carry).transpose() {
        Ok(carry) => carry,
        Err(wrong) => return mistakes.push(wrong.in_file(file)),
    };
    for item in items {
        if read.len() == MAX_PIPELINES {
            let told = format!("there are more than {MAX_PIPELINES} pipelines");
            return mistakes.push(item.wrong(told).in_file(file));
        }
        read.push(read::pipeline(file, carry, item));
    }
}

/// Who may be called. Of those who share a name nobody can be: which one was meant cannot be known.
fn callable<'r>(read: &'r [Read], mistakes: &mut Vec<Mistake>) -> Callable<'r> {
    let mut callable = Callable::new();
    let mut places = BTreeMap::new();
    for Read { name, file, definition, .. } in read {
        let Some((name, at)) = name else { continue };
        let place = Mistake::at(file, at, format!("there are two pipelines named {name:?}"));
        match places.get(name) {
            None => {
                callable.insert(name.as_str(), definition.as_ref());
                places.insert(name, place);
            }
            Some(Mistake { file, place: first, .. }) => {
                callable.insert(name, None);
                let (line, column) = first.unwrap_or_default();
                let told = format!("{}; the other one is in {file}:{line}:{column}", place.told);
                mistakes.push(Mistake { told, ..place });
            }
        }
    }
    callable
}
