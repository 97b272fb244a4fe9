//! Under what a proof was made: whoever reads its report later, or beside another, has to know.

/// What a report says of the machine and the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Conditions {
    /// Of the program.
    pub version: String,
    /// When it began: RFC 3339.
    pub started_at: String,
    /// What runs at the same time on this machine.
    pub cores: usize,
    /// The release of this machine's kernel.
    pub kernel: String,
    /// The version of the database.
    pub database_version: String,
    /// What a reader must not overlook.
    pub notes: Vec<String>,
}

impl Conditions {
    /// Of this machine; what the caller alone knows is given.
    pub fn here(version: &str, started_at: String, database_version: String, notes: Vec<String>) -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            version: version.to_owned(),
            started_at,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: kernel.trim().to_owned(),
            database_version,
            notes,
        }
    }

    /// What ran where, in one line, without the notes.
    pub fn told(&self, store: &str) -> String {
        let Self { version, started_at, cores, kernel, database_version, notes: _ } = self;
        format!(
            "longhaul {version} on {store} {database_version}, {cores} cores, kernel {kernel}, {started_at}"
        )
    }
}
