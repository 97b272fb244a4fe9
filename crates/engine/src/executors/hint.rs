//! What whoever wrote a wrong name probably meant.

/// Words that differ by more are not taken for each other.
const MAX_DISTANCE: usize = 3;
/// A shorter word begins like too many others.
const MIN_BEGINNING: usize = 4;

/// The nearest word that is known, if it is near: one that begins like it, or one that is spelt almost like it.
pub fn hint(word: &str, known: &[&str]) -> String {
    // Whoever wrote a word did not mean the same word.
    let known: Vec<&&str> = known.iter().filter(|known| **known != word).collect();
    let longer = known.iter().filter(|known| word.len() >= MIN_BEGINNING && known.starts_with(word));
    if let [only] = longer.collect::<Vec<_>>()[..] {
        return format!("; did you mean {only:?}?");
    }
    let nearest = known.iter().map(|known| (strsim::osa_distance(word, known), known)).min();
    match nearest {
        Some((far, known)) if far <= MAX_DISTANCE.min(word.len() / 2 + 1) => {
            format!("; did you mean {known:?}?")
        }
        Some(_) | None => String::new(),
    }
}
