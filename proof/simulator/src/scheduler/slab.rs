//! A table whose keys are never valid twice: an event that names something gone is recognised and dropped.

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Entries by key.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an entry.
    pub fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[index as usize];
            entry.1 = Some(value);
            return Key { index, generation: entry.0 };
        }
        let index = u32::try_from(self.entries.len()).expect("few entries live at once");
        self.entries.push((0, Some(value)));
        Key { index, generation: 0 }
    }

    /// The entry of this key, if it is still there.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, value) = self.entries.get_mut(key.index as usize)?;
        if *generation == key.generation { value.as_mut() } else { None }
    }

    /// Takes the entry out; its key is dead from here on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, value) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let taken = value.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(taken)
    }

    /// All entries, by index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(index, (generation, value))| {
            let index = u32::try_from(index).expect("few entries live at once");
            value.as_mut().map(|value| (Key { index, generation: *generation }, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_something_gone_finds_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
    }
}
