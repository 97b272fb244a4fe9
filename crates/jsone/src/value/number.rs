//! Numbers: integers exact in 64 bits while they can be, otherwise finite doubles.
//!
//! Three invariants. Non-finite numbers do not exist: an operation without a finite result answers `None`. Every
//! machine gets the same bits: only IEEE operations and a portable `pow` are used. And what was computed from an
//! integer that no double holds, and was rounded on the way, stays a double: it does not pass for an integer.

mod order;
mod quotient;
mod text;

pub use order::compare_numbers;
pub(crate) use text::ecmascript;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    /// Above `i64::MAX`.
    Large(u64),
    /// Finite.
    Float(f64),
}

/// Doubles count integers without gaps up to here.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

impl Number {
    pub(crate) fn from_json(number: &serde_json::Number) -> Number {
        if let Some(int) = number.as_i64() {
            return Number::Int(int);
        }
        if let Some(large) = number.as_u64() {
            return Number::Large(large);
        }
        // What has neither form was refused when the value was measured.
        Number::Float(number.as_f64().unwrap_or_default())
    }

    /// `None` for what is not finite. There is no such number, but if there were, it could not leave.
    pub(crate) fn to_json(self) -> Option<serde_json::Number> {
        match self {
            Number::Int(int) => Some(int.into()),
            Number::Large(large) => Some(large.into()),
            Number::Float(float) => serde_json::Number::from_f64(float),
        }
    }

    pub(crate) fn from_size(size: usize) -> Number {
        Number::from_integer(size as i128)
    }

    /// Exact in 64 bits, else the nearest double.
    #[expect(clippy::cast_precision_loss, reason = "beyond 64 bits the nearest double is what is wanted")]
    pub(crate) fn from_integer(integer: i128) -> Number {
        if let Ok(int) = i64::try_from(integer) {
            return Number::Int(int);
        }
        if let Ok(large) = u64::try_from(integer) {
            return Number::Large(large);
        }
        Number::Float(integer as f64)
    }

    /// A computed double, as an integer when it is one without doubt.
    #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
    pub(crate) fn from_float(float: f64) -> Option<Number> {
        if !float.is_finite() {
            return None;
        }
        if float.fract() == 0.0 && float.abs() <= EXACT_FLOAT {
            return Some(Number::Int(float as i64));
        }
        Some(Number::Float(float))
    }

    /// Reads digits with an optional fraction, sign and exponent, as exactly as it can.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        if !is_decimal(text) {
            return None;
        }
        if let Ok(integer) = text.parse::<i128>()
            && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer)
        {
            return Some(Number::from_integer(integer));
        }
        Number::from_float(text.parse().ok()?)
    }

    /// The value when it is a whole number that 128 bits hold, however it is held.
    pub(crate) fn countable(self) -> Option<i128> {
        self.whole().filter(|whole| (i128::MIN + 1..i128::MAX).contains(whole))
    }

    /// The value when it is a whole number, however it is held; beyond the range of `i128` its nearest end.
    #[expect(clippy::cast_possible_truncation, reason = "integral; beyond the range of i128 it saturates")]
    pub(crate) fn whole(self) -> Option<i128> {
        match self {
            Number::Int(int) => Some(int.into()),
            Number::Large(large) => Some(large.into()),
            Number::Float(float) => (float.fract() == 0.0).then_some(float as i128),
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Number::Int(int) => int == 0,
            Number::Large(_) => false,
            Number::Float(float) => float == 0.0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "mixed arithmetic is done in doubles")]
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Number::Int(int) => int as f64,
            Number::Large(large) => large as f64,
            Number::Float(float) => float,
        }
    }

    pub(crate) fn negate(self) -> Option<Number> {
        match self.integer() {
            Some(integer) => Some(Number::from_integer(-integer)),
            None => Number::from_float(-self.as_float()),
        }
    }

    pub(crate) fn absolute(self) -> Option<Number> {
        match self.integer() {
            Some(integer) => Some(Number::from_integer(integer.abs())),
            None => Number::from_float(self.as_float().abs()),
        }
    }

    pub(crate) fn plus(self, other: Number) -> Option<Number> {
        match (self.integer(), other.integer()) {
            (Some(left), Some(right)) => Some(Number::from_integer(left + right)),
            _ => self.mixed(other, self.as_float() + other.as_float()),
        }
    }

    pub(crate) fn minus(self, other: Number) -> Option<Number> {
        match (self.integer(), other.integer()) {
            (Some(left), Some(right)) => Some(Number::from_integer(left - right)),
            _ => self.mixed(other, self.as_float() - other.as_float()),
        }
    }

    pub(crate) fn times(self, other: Number) -> Option<Number> {
        if let (Some(left), Some(right)) = (self.integer(), other.integer())
            && let Some(product) = left.checked_mul(right)
        {
            return Some(Number::from_integer(product));
        }
        self.mixed(other, self.as_float() * other.as_float())
    }

    /// `None` also for a division by zero.
    pub(crate) fn divided_by(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        match (self.integer(), other.integer()) {
            (Some(left), Some(right)) if left % right == 0 => Some(Number::from_integer(left / right)),
            (Some(left), Some(right)) => Some(Number::Float(quotient::nearest(left, right))),
            _ => self.mixed(other, self.as_float() / other.as_float()),
        }
    }

    pub(crate) fn to_the_power_of(self, other: Number) -> Option<Number> {
        if let (Some(base), Some(exponent)) = (self.integer(), other.integer())
            && let Ok(exponent) = u32::try_from(exponent)
            && let Some(power) = base.checked_pow(exponent)
            && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&power)
        {
            return Some(Number::from_integer(power));
        }
        let Some(exponent) = other.integer() else {
            return self.mixed(other, libm::pow(self.as_float(), other.as_float()));
        };
        // As a double, an exponent beyond 2^53 is always even.
        let size = libm::pow(self.as_float().abs(), other.as_float());
        let is_negative = self.as_float() < 0.0 && exponent % 2 != 0;
        self.mixed(self, if is_negative { -size } else { size })
    }

    pub(crate) fn square_root(self) -> Option<Number> {
        let root = Number::from_float(self.as_float().sqrt())?;
        match (self.integer(), root.integer()) {
            // A root that is whole only because it was rounded is no integer.
            (Some(square), Some(whole)) if whole * whole != square => Some(Number::Float(root.as_float())),
            _ => Some(root),
        }
    }

    pub(crate) fn ceiling(self) -> Option<Number> {
        match self {
            Number::Int(_) | Number::Large(_) => Some(self),
            Number::Float(float) => Number::from_float(float.ceil()),
        }
    }

    pub(crate) fn floor(self) -> Option<Number> {
        match self {
            Number::Int(_) | Number::Large(_) => Some(self),
            Number::Float(float) => Number::from_float(float.floor()),
        }
    }

    /// What was computed from both in doubles.
    fn mixed(self, other: Number, result: f64) -> Option<Number> {
        if self.fits_a_double() && other.fits_a_double() {
            return Number::from_float(result);
        }
        result.is_finite().then_some(Number::Float(result))
    }

    #[expect(clippy::cast_possible_truncation, reason = "integral and far within the range of i128")]
    fn fits_a_double(self) -> bool {
        self.integer().is_none_or(|integer| self.as_float() as i128 == integer)
    }

    fn integer(self) -> Option<i128> {
        match self {
            Number::Int(int) => Some(int.into()),
            Number::Large(large) => Some(large.into()),
            Number::Float(_) => None,
        }
    }
}

/// Rust also reads `inf`, `nan` and `1.`; JSON-e does not.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    [whole, fraction, exponent]
        .iter()
        .all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
