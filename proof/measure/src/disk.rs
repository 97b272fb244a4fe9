//! The bare disk: how often it can make one small write durable; and files that are read from it, not from memory.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

const PAGE: [u8; 4_096] = [7; 4_096];
const FOR: Duration = Duration::from_secs(1);
/// 64 MiB: what is only in memory would be filled in that time.
const MOST_SYNCS: u32 = 16_384;

/// Appends a page and syncs its data, over and over. What was written is taken away again.
pub fn syncs_per_second(dir: &Path) -> std::io::Result<f64> {
    let path = dir.join("syncs");
    let mut file = File::create(&path)?;
    let begin = Instant::now();
    let mut syncs = 0_u32;
    while begin.elapsed() < FOR && syncs < MOST_SYNCS {
        file.write_all(&PAGE)?;
        file.sync_data()?;
        syncs += 1;
    }
    let per_second = f64::from(syncs) / begin.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(per_second)
}

/// What comes next reads the files of this directory from the disk.
pub fn out_of_the_cache(data_dir: &Path) -> std::io::Result<()> {
    for file in std::fs::read_dir(data_dir)? {
        let path = file?.path();
        if path.is_file() {
            let file = File::open(path)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
