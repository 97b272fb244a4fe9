//! `longhaul pipeline`: `check` and `graph` read pipelines as the daemon would, and ask none; the other verbs ask the daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use api::{PipelineAnswer, PipelineList, PipelineStarted, PipelinesReloaded, StartPipeline};
use clap::{Args, Subcommand, ValueEnum};
use config_file::hint;
use pipelines::{Format, Loaded, Routes, graph, load};

use super::{events, runs};
use crate::client::{AtDaemon, Call, Client, segment};
use crate::config::{Config, ConfigArgument};
use crate::due_time::seconds;
use crate::exit::{FAILED, Failed, TIMED_OUT};
use crate::show::{PrintArgs, Table, plain, say, say_json};

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
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// Read pipelines as the daemon would, and say everything that is wrong with them
    Check {
        /// Files and directories [default: what the configuration names]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        named: ConfigArgument,
    },
    /// Show what follows what
    Graph {
        /// The pipeline
        name: String,
        /// How it is shown
        #[arg(long, value_enum, default_value_t = Shown::Text)]
        format: Shown,
        /// A file or directory to read; may be given more than once [default: what the configuration names]
        #[arg(long = "file", value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        named: ConfigArgument,
    },
    /// The pipelines that the daemon has
    List(PrintArgs),
    /// One pipeline as the daemon has it
    Show {
        /// The pipeline
        name: String,
        #[command(flatten)]
        print: PrintArgs,
    },
    /// Start a pipeline by its name, whatever its condition
    Run(Start),
    /// Let the daemon read its files anew
    Reload(PrintArgs),
}

#[derive(Args)]
pub struct Start {
    /// The pipeline
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
    print: PrintArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Shown {
    Text,
    Mermaid,
    Dot,
}

pub fn run(AtDaemon { connection, verb }: AtDaemon<Verb>) -> Result<ExitCode> {
    match verb {
        Verb::Check { files, named } => return check(&files, &named),
        Verb::Graph { name, format, files, named } => show(&name, format, &files, &named)?,
        Verb::List(print) => {
            print.print(&connection.client()?.ask("list pipelines", Call::get("/pipelines"))?, table)?;
        }
        Verb::Show { name, print } => {
            let path = format!("/pipelines/{}", segment(&name));
            let answer: PipelineAnswer = connection.client()?.ask("show pipeline", Call::get(&path))?;
            print.print(&answer, |answer| {
                answer.pipeline.graph.lines().map(plain).collect::<Vec<_>>().join("\n")
            })?;
        }
        Verb::Run(start) => return begin(&connection.client()?, start),
        Verb::Reload(print) => return reload(&connection.client()?, print),
    }
    Ok(ExitCode::SUCCESS)
}

fn table(list: &PipelineList) -> Table {
    let mut table = Table::new(&["Name", "Trigger", "Steps", "Version"]);
    for one in &list.pipelines {
        table.row(&[&one.name, &one.trigger, &one.steps.to_string(), &one.version]);
    }
    table
}

fn begin(client: &Client, Start { name, payload, circle, wait, print }: Start) -> Result<ExitCode> {
    let path = format!("/pipelines/{}/runs", segment(&name));
    let payload = events::object("--payload", payload.as_deref())?;
    let sent = StartPipeline { payload, circle, wait_seconds: wait };
    let answer: PipelineStarted = client.ask("run pipeline", Call::post(&path, &sent))?;
    print.print(&answer, |PipelineStarted { run_id: id, run, .. }| match run {
        Some(run) => runs::shown(run),
        None => format!("Started {id}; `longhaul runs show {id}` shows where it is"),
    })?;
    Ok(match answer.run.as_ref().map(|run| run.state.as_str()) {
        Some("failed" | "cancelled") => ExitCode::from(FAILED),
        // Whoever asked to wait is told that they did not see the end.
        state if wait.is_some() && state != Some("completed") => ExitCode::from(TIMED_OUT),
        Some(_) | None => ExitCode::SUCCESS,
    })
}

fn reload(client: &Client, print: PrintArgs) -> Result<ExitCode> {
    let told: PipelinesReloaded = client.ask("reload pipelines", Call::bare("POST", "/pipelines/reload"))?;
    if print.json {
        say_json(&told)?;
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

fn check(files: &[PathBuf], named: &ConfigArgument) -> Result<ExitCode> {
    let Loaded { pipelines, mistakes } = load(&paths(files, named)?);
    for mistake in &mistakes {
        eprintln!("{}", plain(&mistake.to_string()));
    }
    let count = pipelines.len();
    let names: Vec<String> = pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
    if let Some(path) = named.found() {
        for doubt in Config::read(path)?.doubts_of(&Routes::new(pipelines)) {
            eprintln!("warning: {}", plain(&doubt.to_string()));
        }
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    say(format_args!("{count} can be used: {names}"));
    Ok(if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn show(name: &str, format: Shown, files: &[PathBuf], named: &ConfigArgument) -> Result<()> {
    let Loaded { pipelines, mistakes } = load(&paths(files, named)?);
    let routes = Routes::new(pipelines);
    let Some(pipeline) = routes.find(name) else {
        for mistake in &mistakes {
            eprintln!("{}", plain(&mistake.to_string()));
        }
        let known: Vec<&str> = routes.names().collect();
        let told = format!("no pipeline named {name:?} can be used{}", hint(name, &known));
        return Err(Failed::because(told).into());
    };
    let format = match format {
        Shown::Text => Format::Text,
        Shown::Mermaid => Format::Mermaid,
        Shown::Dot => Format::Dot,
    };
    say(graph(pipeline, format).trim_end());
    Ok(())
}

/// What is to be read: what was given, or what the configuration names.
fn paths(given: &[PathBuf], named: &ConfigArgument) -> Result<Vec<PathBuf>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let paths = named.read()?.pipelines;
    if paths.is_empty() {
        let path = named.path().display();
        let told = format!("{path} names no pipelines: name some there, or files here");
        return Err(Failed::usage(told).into());
    }
    Ok(paths)
}
