//! A small gzip file that becomes a large one: written bit by bit, because no honest compressor is at hand.
//!
//! One deflate block with the fixed codes: the beginning, then the filler repeated by references to itself (258 bytes in
//! 13 bits), then the end. It is a correct file, so that a reader without limits takes in all of it.

/// Bytes that one reference repeats.
const REFERENCE_BYTES: usize = 258;

/// The file that inflates to `prefix`, `filler` at least `count` times, `suffix`.
pub fn gzip_bomb(prefix: &[u8], filler: u8, count: usize, suffix: &[u8]) -> Vec<u8> {
    let references = count.div_ceil(REFERENCE_BYTES);
    let mut bits = Bits::default();
    // The last block, with fixed codes.
    bits.put(0b011, 3);
    for byte in prefix {
        bits.literal(*byte);
    }
    bits.literal(filler);
    for _ in 0..references {
        // Length 258 is code 285: eight bits; distance 1 is code 0: five bits.
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    for byte in suffix {
        bits.literal(*byte);
    }
    // The end of the block is code 256: seven zeros.
    bits.code(0, 7);

    let mut checksum = Crc32::new();
    checksum.add(prefix.iter().copied());
    checksum.add(std::iter::repeat_n(filler, 1 + references * REFERENCE_BYTES));
    checksum.add(suffix.iter().copied());

    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    file.extend(bits.finish());
    file.extend(checksum.finish().to_le_bytes());
    let length = prefix.len() + 1 + references * REFERENCE_BYTES + suffix.len();
    // The format keeps the length modulo 2^32.
    let length = u32::try_from(length & 0xffff_ffff).expect("the upper bits are gone");
    file.extend(length.to_le_bytes());
    file
}

/// A stream of bits, lowest first, as deflate wants it.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    waiting: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, width: u32) {
        self.waiting |= value << self.count;
        self.count += width;
        while self.count >= 8 {
            self.bytes.push((self.waiting & 0xff) as u8);
            self.waiting >>= 8;
            self.count -= 8;
        }
    }

    /// Codes, unlike numbers, go highest bit first.
    fn code(&mut self, code: u32, width: u32) {
        self.put(code.reverse_bits() >> (32 - width), width);
    }

    fn literal(&mut self, byte: u8) {
        let value = u32::from(byte);
        if value < 144 {
            self.code(0b0011_0000 + value, 8);
        } else {
            self.code(0b1_1001_0000 + value - 144, 9);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
        self.bytes
    }
}

/// The checksum of gzip.
struct Crc32 {
    table: [u32; 256],
    value: u32,
}

impl Crc32 {
    fn new() -> Self {
        let mut table = [0; 256];
        for (entry, index) in table.iter_mut().zip(0_u32..) {
            *entry = (0..8).fold(
                index,
                |value, _| {
                    if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 }
                },
            );
        }
        Self { table, value: u32::MAX }
    }

    fn add(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            let index = (self.value ^ u32::from(byte)) & 0xff;
            self.value = self.table[index as usize] ^ (self.value >> 8);
        }
    }

    fn finish(self) -> u32 {
        !self.value
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_reader_without_limits_takes_in_all_of_it() {
        let bomb = gzip_bomb(b"{\"a\":\"", b'\xe9', 1 << 20, b"\"}");
        assert!(bomb.len() < 8 * 1024, "{} bytes are not small", bomb.len());
        let mut gzip = Command::new("gzip")
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("gzip is installed");
        gzip.stdin.take().unwrap().write_all(&bomb).unwrap();
        let output = gzip.wait_with_output().unwrap();
        assert!(output.status.success(), "gzip finds a fault: {output:?}");
        let filler = &output.stdout[6..output.stdout.len() - 2];
        assert!(filler.len() >= 1 << 20 && filler.iter().all(|byte| *byte == b'\xe9'));
        assert!(output.stdout.starts_with(b"{\"a\":\"") && output.stdout.ends_with(b"\"}"));
    }
}
