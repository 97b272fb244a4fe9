//! `longhaul pipeline`: `check` and `graph` read pipelines as the daemon would, and ask none; the other verbs ask the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use api::{PipelineAnswer, PipelineList, PipelineStarted, PipelinesReloaded, StartPipeline};
use clap::{Args, Subcommand, ValueEnum};
use config_file::hint;
use pipelines::{Format, Loaded, Routes, graph, load};

use super::events::payload;
use super::runs;
use super::serve::CONFIG_FILE;
use crate::client::{Call, Client, Connection, segment};
use crate::config::Config;
use crate::due_time::seconds;
use crate::exit::{FAILED, Failed, TIMED_OUT};
use crate::show::{Table, plain, say};

const EXAMPLES: &str = "A pipeline says what follows an event: steps after each other or all together, each done by an executor. \
Files with `pipelines:` are named in longhaul.yaml, `pipelines: [FILE or DIRECTORY]`. Examples are in examples/pipelines.

Examples:
  longhaul pipeline check                             those that longhaul.yaml names
  longhaul pipeline check tides.yaml pipelines/       files, and all *.yaml and *.yml of directories
  longhaul pipeline graph tide-alert                  as a tree
  longhaul pipeline graph tide-alert --format mermaid --file tides.yaml
  longhaul pipeline list                              those that the daemon has
  longhaul pipeline run tide-alert --payload '{\"level\": 2140}' --wait 30
  longhaul pipeline reload                            the daemon reads its files anew; what runs is not touched

Exit codes: 0 all can be used, or the run has completed; 1 some cannot, or the run failed; 124 the time of a wait is over. Every \
mistake is printed with its file, line and column; a step that uses what the configuration does not have is a warning.";

/// Check and show pipelines
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PipelineArguments {
    #[command(flatten)]
    connection: Connection,
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
    /// The pipelines that the daemon has
    #[command(after_help = EXAMPLES)]
    List(Asked),
    /// One pipeline as the daemon has it
    #[command(after_help = EXAMPLES)]
    Show {
        /// The pipeline
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        asked: Asked,
    },
    /// Start a pipeline by its name, whatever its condition
    #[command(after_help = EXAMPLES)]
    Run(Start),
    /// Let the daemon read its files anew
    #[command(after_help = EXAMPLES)]
    Reload(Asked),
}

#[derive(Args)]
struct Asked {
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Start {
    /// The pipeline
    #[arg(value_name = "NAME")]
    name: String,
    /// What its first steps are given: a JSON object, or @FILE [default: {}]
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The circle that sees the run
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Wait for its end at most so long, such as 30s
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    wait: Option<u64>,
    #[command(flatten)]
    asked: Asked,
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
        Verb::List(asked) => list(&arguments.connection.client()?, asked),
        Verb::Show { name, asked } => show_one(&arguments.connection.client()?, name, asked),
        Verb::Run(start) => begin(&arguments.connection.client()?, start),
        Verb::Reload(asked) => reload(&arguments.connection.client()?, asked),
    }
}

fn list(client: &Client, asked: &Asked) -> Result<ExitCode> {
    let found: PipelineList =
        client.call(Call::get("/pipelines")).map_err(|error| Failed::to("list pipelines", &error))?;
    if asked.json {
        say(format_args!("{}", serde_json::to_string(&found)?));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["Name", "Trigger", "Steps", "Version"]);
    for one in &found.pipelines {
        table.row(&[&one.name, &one.trigger, &one.steps.to_string(), &one.version]);
    }
    say(format_args!("{}", table.text()));
    Ok(ExitCode::SUCCESS)
}

fn show_one(client: &Client, name: &str, asked: &Asked) -> Result<ExitCode> {
    let path = format!("/pipelines/{}", segment(name));
    let answer: PipelineAnswer =
        client.call(Call::get(&path)).map_err(|error| Failed::to("show pipeline", &error))?;
    if asked.json {
        say(format_args!("{}", serde_json::to_string(&answer)?));
    } else {
        for line in answer.pipeline.graph.lines() {
            say(format_args!("{}", plain(line)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn begin(client: &Client, start: &Start) -> Result<ExitCode> {
    let path = format!("/pipelines/{}/runs", segment(&start.name));
    let payload = payload(start.payload.as_deref())?;
    let sent = StartPipeline { payload, circle: start.circle.clone(), wait_seconds: start.wait };
    let answer: PipelineStarted =
        client.call(Call::post(&path, &sent)).map_err(|error| Failed::to("run pipeline", &error))?;
    if start.asked.json {
        say(format_args!("{}", serde_json::to_string(&answer)?));
    } else if let Some(run) = &answer.run {
        runs::show(run);
    } else {
        let id = &answer.run_id;
        say(format_args!("Started {id}; `longhaul runs show {id}` shows where it is"));
    }
    Ok(match answer.run.as_ref().map(|run| run.state.as_str()) {
        Some("failed" | "cancelled") => ExitCode::from(FAILED),
        // Whoever asked to wait is told that they did not see the end.
        state if start.wait.is_some() && state != Some("completed") => ExitCode::from(TIMED_OUT),
        Some(_) | None => ExitCode::SUCCESS,
    })
}

fn reload(client: &Client, asked: &Asked) -> Result<ExitCode> {
    let call = Call { method: "POST", path: "/pipelines/reload", body: None, idempotency_key: None };
    let told: PipelinesReloaded =
        client.call(call).map_err(|error| Failed::to("reload pipelines", &error))?;
    if asked.json {
        say(format_args!("{}", serde_json::to_string(&told)?));
    } else {
        for wrong in told.mistakes.iter().chain(&told.doubts) {
            eprintln!("{}", plain(wrong));
        }
        say(format_args!("{} in use: {}", told.pipelines.len(), told.pipelines.join(", ")));
        if !told.kept.is_empty() {
            say(format_args!("As they were, because of the mistakes: {}", told.kept.join(", ")));
        }
    }
    Ok(if told.mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn check(files: &[PathBuf], named: &Named) -> Result<ExitCode> {
    let Loaded { pipelines, mistakes } = load(&named.paths(files)?);
    for mistake in &mistakes {
        eprintln!("{}", plain(&mistake.to_string()));
    }
    let count = pipelines.len();
    let names: Vec<String> = pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
    if let Some(config) = named.found()? {
        for doubt in config.doubts_of(&Routes::new(pipelines)) {
            eprintln!("warning: {}", plain(&doubt.to_string()));
        }
    }
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
    /// The configuration, if one was named or lies here.
    fn found(&self) -> Result<Option<Config>> {
        let path = match &self.config {
            Some(path) => path,
            None if Path::new(CONFIG_FILE).exists() => Path::new(CONFIG_FILE),
            None => return Ok(None),
        };
        Ok(Some(Config::read(path)?))
    }

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
