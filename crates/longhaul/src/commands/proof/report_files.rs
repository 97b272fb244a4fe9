//! The files of a report, opened before the proof begins: that they cannot be written is not found out when it is over.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exit::Failed;
use crate::show::say_if_read;

/// FILE.json and FILE.html; an earlier report stays in them until this one is written.
pub struct ReportFiles {
    name: PathBuf,
    json: ReportFile,
    page: ReportFile,
}

struct ReportFile {
    path: PathBuf,
    file: File,
    /// Not there before, and nothing in it yet: taken away if nothing comes.
    made: bool,
}

impl ReportFiles {
    pub fn open(name: &Path) -> Result<Self, Failed> {
        let open = |kind: &str| {
            let path = PathBuf::from(format!("{}.{kind}", name.display()));
            let refused =
                |error| Failed::usage(format!("the report cannot be written to {}: {error}", path.display()));
            ReportFile::open(&path).map_err(refused)
        };
        Ok(Self { name: name.to_owned(), json: open("json")?, page: open("html")? })
    }

    /// Writes both, and says where they are.
    pub fn write(mut self, json: &str, page: &str) -> Result<()> {
        self.json.write(json)?;
        self.page.write(page)?;
        say_if_read(format_args!("report: {0}.json, {0}.html", self.name.display()));
        Ok(())
    }
}

impl ReportFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        let options = File::options().write(true).clone();
        let (file, made) = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (options.clone().open(path)?, false),
            made => (made?, true),
        };
        Ok(Self { path: path.to_owned(), file, made })
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.made = false;
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
