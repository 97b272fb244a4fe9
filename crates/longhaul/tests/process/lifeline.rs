//! A named pipe that a command opens and everything it starts inherits: its end is the end of them all, whatever they did to hide.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::sync::mpsc;

use crate::given::PATIENCE;

pub struct Lifeline {
    path: PathBuf,
    words: mpsc::UnboundedReceiver<String>,
}

impl Lifeline {
    pub fn in_dir(dir: &Path) -> Self {
        let path = fifo(dir, "lifeline");
        let (sender, words) = mpsc::unbounded_channel();
        let of_thread = path.clone();
        // Opening waits for the first writer, reading for the last.
        std::thread::spawn(move || {
            let file = std::fs::File::open(of_thread).expect("the pipe opens");
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { path, words }
    }

    /// A script whose shell, and all that it starts, holds the line as descriptor 9.
    pub fn script(&self, rest: &str) -> String {
        format!("exec 9>'{}'\n{rest}", self.path.display())
    }

    /// The next line that one of them says.
    pub async fn said(&mut self) -> String {
        let word = tokio::time::timeout(PATIENCE, self.words.recv()).await;
        word.expect("something is said").expect("somebody lives")
    }

    /// Waits until nobody holds it any more, and gives what was said until then.
    pub async fn ended(&mut self) -> Vec<String> {
        let wait = async {
            let mut said = Vec::new();
            while let Some(word) = self.words.recv().await {
                said.push(word);
            }
            said
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("nobody outlives the attempt")
    }

    /// Whether somebody holds it: nobody speaks, and it has not ended.
    pub fn is_held(&mut self) -> bool {
        matches!(self.words.try_recv(), Err(mpsc::error::TryRecvError::Empty))
    }
}

pub fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there is none yet");
    path
}
