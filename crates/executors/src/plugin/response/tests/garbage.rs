//! Ten thousand answers that were damaged on their way: each is an answer within its limits, or none, and never a panic.
//!
//! `LONGHAUL_ANSWERS` says how many.

use super::*;

const ANSWERS: u64 = 10_000;

const WHOLE: &str = r#"{"status":"ok","result":"printed 2 pages","events":[{"type":"page.printed","payload":{"n":1763337600123456789,"at":{"x":[1,2]}},"dedupe_key":"page-1","correlation":{"run":"R1"}}],"state_updates":{"mtime_ns":1763337600123456789,"seen":["a","b"]},"logs":[{"level":"warn","message":"low ink"},7]}"#;
const ERROR: &str =
    r#"{"status":"error","error":"no paper","retry":false,"events":[{"type":"a"}],"logs":[]}"#;

/// What is put where it does not belong.
const SCRAPS: [&[u8]; 18] = [
    b"\xff\xfe",
    b"\0",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"}{",
    b"\x1b[2J",
    b"null",
    b"[]",
    b"{}",
    b"\"status\":\"ok\",",
    b"1e999",
    b"-",
    b"\"\\",
    b"\n\n",
];

/// Numbers from a seed (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

fn damaged(chance: &mut Chance) -> Vec<u8> {
    let whole = if chance.below(4) == 0 { ERROR } else { WHOLE };
    let mut bytes = whole.as_bytes().to_vec();
    let at = chance.below(bytes.len());
    match chance.below(9) {
        0 => bytes.truncate(at),
        1 | 2 => {
            for _ in 0..=chance.below(6) {
                let at = chance.below(bytes.len());
                bytes[at] ^= 1 << chance.below(8);
            }
        }
        3 | 4 => {
            for _ in 0..=chance.below(3) {
                let at = chance.below(bytes.len());
                bytes.splice(at..at, SCRAPS[chance.below(SCRAPS.len())].iter().copied());
            }
        }
        5 => {
            let until = at + chance.below(bytes.len() - at);
            let piece = bytes[at..until].to_vec();
            bytes.splice(at..at, piece);
        }
        6 => bytes = (0..chance.below(2_000)).map(|_| chance.byte()).collect(),
        7 => {
            bytes =
                whole.replacen("1763337600123456789", &"9".repeat(1 + chance.below(20_000)), 1).into_bytes();
        }
        _ => {
            let deep = [60, 130, 100_000][chance.below(3)];
            let place = ["[1,2]", "[\"a\",\"b\"]", "7]", "{\"run\":\"R1\"}"][chance.below(4)];
            let nested = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
            bytes = whole.replacen(place, &nested, 1).into_bytes();
        }
    }
    bytes
}

/// Whatever is taken can be kept and shown.
fn check_taken(answer: &Answer, told: &str) {
    assert!(answer.events.len() <= MAX_EVENTS && answer.logs.len() <= MAX_LOGS, "{told}");
    assert!(answer.logs.iter().all(|log| log.message.len() <= MAX_LOG_BYTES), "{told}");
    for emitted in &answer.events {
        let payload = std::str::from_utf8(&emitted.payload).unwrap();
        // Numbers may be longer than any type holds: they stay as they were written.
        assert!(serde_json::from_str::<JsonObject>(payload).is_ok(), "{told}");
        assert!(payload.len() <= MAX_PAYLOAD_BYTES && nesting(payload) <= MAX_PAYLOAD_NESTING, "{told}");
        assert!((1..=MAX_EVENT_TYPE_BYTES).contains(&emitted.kind.len()), "{told}");
    }
    for value in answer.state_updates.values() {
        assert!(nesting(value.get()) <= MAX_PAYLOAD_NESTING, "the state cannot be read again: {told}");
    }
}

#[test]
fn ten_thousand_damaged_answers_are_answers_within_their_limits_or_none() {
    let answers = std::env::var("LONGHAUL_ANSWERS").map_or(ANSWERS, |answers| answers.parse().unwrap());
    let (mut taken, mut errors, mut none) = (0_u64, 0_u64, 0_u64);
    for seed in 0..answers {
        let bytes = damaged(&mut Chance(seed));
        let told: String = String::from_utf8_lossy(&bytes).chars().take(200).collect();
        match Response::read(&bytes, Strictness::Lenient, &Mask::default()) {
            Ok(Response::Ok(answer)) => {
                check_taken(&answer, &told);
                taken += 1;
            }
            Ok(Response::Error { error, .. }) => {
                assert!(!error.trim().is_empty(), "{told}");
                errors += 1;
            }
            Err(NoAnswer::Unreadable(why)) => {
                assert!(!why.is_empty(), "{told}");
                none += 1;
            }
            Err(NoAnswer::Refused(failure)) => {
                assert!(!failure.message.is_empty(), "{told}");
                none += 1;
            }
        }
    }
    println!("{taken} taken, {errors} errors, {none} no answer");
    // Too much of one thing would prove little.
    assert!(taken > answers / 20 && errors > answers / 100 && none > answers / 4, "{taken} {errors} {none}");
}
