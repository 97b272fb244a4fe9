//! `longhaul pipeline`: pipelines are read as the daemon would read them, and shown; no daemon is asked.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use engine::hint;
use engine::pipelines::{Format, Loaded, Routes, graph, load};

use super::serve::CONFIG_FILE;
use crate::config::Config;
use crate::exit::{FAILED, Failed};
use crate::show::{plain, say};

const EXAMPLES: &str = "A pipeline says what follows an event: steps after each other or all together, each done by an executor. \
Files with `pipelines:` are named in longhaul.yaml, `pipelines: [FILE or DIRECTORY]`. Examples are in examples/pipelines.

Examples:
  longhaul pipeline check                             those that longhaul.yaml names
  longhaul pipeline check tides.yaml pipelines/       files, and all *.yaml and *.yml of directories
  longhaul pipeline graph tide-alert                  as a tree
  longhaul pipeline graph tide-alert --format mermaid --file tides.yaml

Exit codes: 0 all can be used, 1 some cannot; every mistake is printed with its file, line and column.";

/// Check and show pipelines
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PipelineArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Read pipelines as the daemon would, and say everything that is wrong with them
    #[command(after_help = EXAMPLES)]
    Check {
        /// Files and directories [default: what the configuration names]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        named: Named,
    },
    /// Show what follows what
    #[command(after_help = EXAMPLES)]
    Graph {
        /// The pipeline
        #[arg(value_name = "NAME")]
        name: String,
        /// How it is shown
        #[arg(long, value_enum, default_value_t = Shown::Text)]
        format: Shown,
        /// A file or directory to read; may be given more than once [default: what the configuration names]
        #[arg(long = "file", value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        named: Named,
    },
}

#[derive(Args)]
struct Named {
    /// The configuration [default: ./longhaul.yaml]
    #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shown {
    Text,
    Mermaid,
    Dot,
}

pub fn run(arguments: &PipelineArguments) -> Result<ExitCode> {
    match &arguments.verb {
        Verb::Check { files, named } => check(files, named),
        Verb::Graph { name, format, files, named } => show(name, *format, files, named),
    }
}

fn check(files: &[PathBuf], named: &Named) -> Result<ExitCode> {
    let Loaded { pipelines, mistakes } = load(&named.paths(files)?);
    for mistake in &mistakes {
        eprintln!("{}", plain(&mistake.to_string()));
    }
    let count = pipelines.len();
    let names: Vec<&str> = pipelines.iter().map(|pipeline| pipeline.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    say(format_args!("{count} can be used: {names}"));
    Ok(if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn show(name: &str, format: Shown, files: &[PathBuf], named: &Named) -> Result<ExitCode> {
    let Loaded { pipelines, mistakes } = load(&named.paths(files)?);
    let routes = Routes::new(pipelines);
    let Some(pipeline) = routes.find(name) else {
        for mistake in &mistakes {
            eprintln!("{}", plain(&mistake.to_string()));
        }
        let known: Vec<&str> = routes.names().collect();
        let told = format!("no pipeline named {name:?} can be used{}", hint(name, &known));
        return Err(Failed { code: FAILED, message: told }.into());
    };
    let format = match format {
        Shown::Text => Format::Text,
        Shown::Mermaid => Format::Mermaid,
        Shown::Dot => Format::Dot,
    };
    say(format_args!("{}", graph(pipeline, format).trim_end()));
    Ok(ExitCode::SUCCESS)
}

impl Named {
    /// What is to be read: what was given, or what the configuration names.
    fn paths(&self, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
        if !given.is_empty() {
            return Ok(given.to_vec());
        }
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIG_FILE));
        let paths = Config::read(path)?.pipelines;
        if paths.is_empty() {
            let told = format!("{} names no pipelines: name some there, or files here", path.display());
            return Err(Failed::usage(told).into());
        }
        Ok(paths)
    }
}
