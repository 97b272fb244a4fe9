//! The memory that the connections of a database in WAL mode share: the WAL index, and eight lock slots.
//!
//! It is volatile: it never reaches an image, and is forgotten when the last handle lets go of it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

use crate::fault::Failure;
use crate::storage::HandleId;

/// The regions of one file's shared memory and who holds which slots.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    // Atomics, because SQLite reads and writes a region from many threads through a bare pointer. The box
    // keeps a region in place while the list grows.
    regions: Vec<Box<[AtomicU64]>>,
    holders: BTreeMap<HandleId, Slots>,
}

/// A set of lock slots, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotMask(pub(crate) u8);

/// How a slot is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotLock {
    Shared,
    Exclusive,
}

#[derive(Debug, Default)]
struct Slots {
    shared: u8,
    exclusive: u8,
}

impl SharedMemory {
    /// The address of a region, made with zeros if it is missing; it stays valid until the handle unmaps.
    pub(crate) fn map_extended(&mut self, handle: HandleId, region: usize, bytes: usize) -> *mut c_void {
        while self.regions.len() <= region {
            let words = bytes.div_ceil(size_of::<AtomicU64>());
            self.regions.push((0..words).map(|_| AtomicU64::new(0)).collect());
        }
        self.map_existing(handle, region).unwrap_or(std::ptr::null_mut())
    }

    /// The address of a region if some handle has made it.
    pub(crate) fn map_existing(&mut self, handle: HandleId, region: usize) -> Option<*mut c_void> {
        self.holders.entry(handle).or_default();
        self.regions.get(region).map(|words| words.as_ptr().cast_mut().cast())
    }

    /// Takes all the slots of the mask or none.
    pub(crate) fn lock(&mut self, handle: HandleId, mask: SlotMask, lock: SlotLock) -> Result<(), Failure> {
        if !self.holders.contains_key(&handle) {
            return Err(Failure::NotMapped);
        }
        let in_the_way = self.holders.iter().any(|(holder, slots)| match lock {
            SlotLock::Shared => *holder != handle && slots.exclusive & mask.0 != 0,
            SlotLock::Exclusive => (slots.shared | slots.exclusive) & mask.0 != 0,
        });
        if in_the_way {
            return Err(Failure::Busy);
        }
        let slots = self.holders.entry(handle).or_default();
        match lock {
            SlotLock::Shared => slots.shared |= mask.0,
            SlotLock::Exclusive => slots.exclusive |= mask.0,
        }
        Ok(())
    }

    /// Lets go of the slots of the mask that the handle holds.
    pub(crate) fn unlock(&mut self, handle: HandleId, mask: SlotMask) -> Result<(), Failure> {
        let slots = self.holders.get_mut(&handle).ok_or(Failure::NotMapped)?;
        slots.shared &= !mask.0;
        slots.exclusive &= !mask.0;
        Ok(())
    }

    /// Forgets the handle, its slots, and with the last handle the memory.
    pub(crate) fn unmap(&mut self, handle: HandleId) {
        self.holders.remove(&handle);
        if self.holders.is_empty() {
            self.regions.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HandleId = HandleId(1);
    const TWO: HandleId = HandleId(2);
    const SLOT: SlotMask = SlotMask(0b100);

    fn mapped_by_both() -> SharedMemory {
        let mut memory = SharedMemory::default();
        let address = memory.map_extended(ONE, 0, 1 << 15);
        assert_eq!(memory.map_existing(TWO, 0), Some(address));
        memory
    }

    #[test]
    fn shared_slot_is_held_by_many_and_refused_to_an_exclusive_holder() {
        let mut memory = mapped_by_both();
        memory.lock(ONE, SLOT, SlotLock::Shared).unwrap();
        memory.lock(TWO, SLOT, SlotLock::Shared).unwrap();
        memory.unlock(ONE, SLOT).unwrap();
        assert_eq!(memory.lock(ONE, SLOT, SlotLock::Exclusive), Err(Failure::Busy));
        memory.unlock(TWO, SLOT).unwrap();
        assert_eq!(memory.lock(ONE, SLOT, SlotLock::Exclusive), Ok(()));
        assert_eq!(memory.lock(TWO, SLOT, SlotLock::Shared), Err(Failure::Busy));
    }

    #[test]
    fn exclusive_range_is_all_or_nothing() {
        let mut memory = mapped_by_both();
        memory.lock(ONE, SLOT, SlotLock::Shared).unwrap();
        assert_eq!(memory.lock(TWO, SlotMask(0b110), SlotLock::Exclusive), Err(Failure::Busy));
        assert_eq!(memory.lock(ONE, SlotMask(0b010), SlotLock::Exclusive), Ok(()));
    }

    #[test]
    fn memory_is_forgotten_with_its_last_handle() {
        let mut memory = mapped_by_both();
        memory.unmap(ONE);
        assert!(memory.map_existing(TWO, 0).is_some());
        memory.unmap(TWO);
        assert_eq!(memory.map_existing(ONE, 0), None);
    }
}
