//! How a number reads: integers digit by digit, doubles as ECMAScript and RFC 8785 write them.

use std::fmt;

use super::Number;

/// From ten to this power on, ECMAScript writes an exponent.
const LARGEST_PLAIN: i32 = 21;
/// Down to ten to this power, ECMAScript writes leading zeros.
const SMALLEST_PLAIN: i32 = -6;

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(int) => write!(f, "{int}"),
            Number::Large(large) => write!(f, "{large}"),
            Number::Float(float) => f.write_str(&ecmascript(*float)),
        }
    }
}

/// The shortest digits that read back as the same double, in ECMAScript's layout.
pub(crate) fn ecmascript(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", float.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // The value is 0.DIGITS times ten to the power of `point`.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let sign = if float < 0.0 { "-" } else { "" };
    format!("{sign}{}", layout(&digits, point))
}

fn layout(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if (1..=LARGEST_PLAIN).contains(&point) {
        let whole = usize::try_from(point).unwrap_or_default();
        if count <= point {
            return format!("{digits:0<whole$}");
        }
        return format!("{}.{}", &digits[..whole], &digits[whole..]);
    }
    if (SMALLEST_PLAIN + 1..=0).contains(&point) {
        let zeros = usize::try_from(-point).unwrap_or_default();
        return format!("0.{}{digits}", "0".repeat(zeros));
    }
    let exponent = point - 1;
    let sign = if exponent < 0 { '-' } else { '+' };
    let (first, rest) = digits.split_at(1);
    let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
    format!("{first}{fraction}e{sign}{}", exponent.abs())
}
