//! `longhaul completions`: what a shell needs to complete our verbs and flags.

use anyhow::Result;
use clap::{Args, Command, ValueEnum};

use crate::show::say;

const EXAMPLES: &str = "Examples:
  longhaul completions bash > ~/.local/share/bash-completion/completions/longhaul
  longhaul completions zsh > ~/.zfunc/_longhaul
  longhaul completions fish > ~/.config/fish/completions/longhaul.fish";

/// Print the completions for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub fn run(completions: &Completions, mut command: Command) -> Result<()> {
    use clap_complete::{generate, shells};
    let mut text = Vec::new();
    match completions.shell {
        Shell::Bash => generate(shells::Bash, &mut command, "longhaul", &mut text),
        Shell::Zsh => generate(shells::Zsh, &mut command, "longhaul", &mut text),
        Shell::Fish => generate(shells::Fish, &mut command, "longhaul", &mut text),
    }
    say(String::from_utf8(text)?.trim_end());
    Ok(())
}
