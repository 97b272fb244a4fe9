//! The line that makes a drill's decisions again: every argument that they depend on, and no password.

use super::Drill;

/// What to type.
pub fn again(drill: &Drill, seed: u64, nodes: u64) -> String {
    let mut words: Vec<String> = vec!["longhaul".into(), "drill".into()];
    let mut add = |name: &str, value: &str| words.extend([name.to_owned(), quoted(value)]);
    add("--seconds", &drill.seconds.to_string());
    add("--seed", &seed.to_string());
    add("--nodes", &nodes.to_string());
    if !drill.load.is_empty() {
        add("--load", &drill.load.join(","));
    }
    if let Some(dir) = &drill.dir {
        add("--dir", &dir.display().to_string());
    }
    if let Some(database) = &drill.database {
        add("--database", &without_password(database));
    }
    if let Some(plant) = &drill.plant {
        add("--plant", plant);
    }
    words.join(" ")
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,=%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An address that may be shown.
fn without_password(address: &str) -> String {
    let is_password =
        |pair: &&str| pair.split('=').next().is_some_and(|name| name.trim().ends_with("password"));
    let Some((scheme, rest)) = address.split_once("://") else {
        // Pairs of a name and a value.
        let pairs = address.split_whitespace().filter(|pair| !is_password(pair));
        return pairs.collect::<Vec<_>>().join(" ");
    };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may have anything in it that is not the last of its kind.
    let place = match place.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => place.to_owned(),
    };
    let options: Vec<&str> =
        options.split('&').filter(|pair| !pair.is_empty() && !is_password(pair)).collect();
    let joint = if options.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{joint}{}", options.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_its_password_however_it_is_written() {
        for (given, shown) in [
            ("postgres://db/scratch", "postgres://db/scratch"),
            ("postgres://me:se:c@ret@db:5432/scratch", "postgres://me@db:5432/scratch"),
            ("postgres://me@db/s?sslmode=require&password=secret", "postgres://me@db/s?sslmode=require"),
            ("postgres://db/s?password=secret", "postgres://db/s"),
            ("host=db user=me password=secret dbname=s", "host=db user=me dbname=s"),
        ] {
            assert_eq!(without_password(given), shown);
        }
    }

    #[test]
    fn word_that_a_shell_would_split_is_quoted() {
        assert_eq!(quoted("/mnt/that-disk"), "/mnt/that-disk");
        assert_eq!(quoted("that disk's"), r"'that disk'\''s'");
    }
}
