//! The quotient of two integers as the one double that lies nearest to it. Dividing them as doubles would round
//! three times when they are beyond 2^53.

/// Bits before the point of a double's exponent of zero.
const EXPONENT_BIAS: u64 = 1023;
const FRACTION_BITS: u32 = 52;

/// The double nearest to the quotient of two integers of at most 64 bits, the second not zero.
#[expect(clippy::cast_precision_loss, reason = "rounding to the nearest double is what it is for")]
pub(super) fn nearest(dividend: i128, divisor: i128) -> f64 {
    if dividend == 0 {
        return 0.0;
    }
    // Filling 127 bits leaves a quotient of more than 62, of which a double keeps 53.
    let shift = dividend.unsigned_abs().leading_zeros() - 1;
    let shifted = dividend.unsigned_abs() << shift;
    let divisor_size = divisor.unsigned_abs();
    // A last bit stands for all that is lost: it breaks ties, and nothing else.
    let lost = u128::from(!shifted.is_multiple_of(divisor_size));
    let rounded = ((shifted / divisor_size) | lost) as f64;
    let scale = f64::from_bits((EXPONENT_BIAS - u64::from(shift)) << FRACTION_BITS);
    let size = rounded * scale;
    if (dividend < 0) == (divisor < 0) { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_divide_as_doubles_do() {
        for dividend in -60_i32..60 {
            for divisor in (-60_i32..60).filter(|divisor| *divisor != 0) {
                let doubles = f64::from(dividend) / f64::from(divisor);
                let found = nearest(dividend.into(), divisor.into());
                assert_eq!(found.to_bits(), (doubles + 0.0).to_bits(), "{dividend} / {divisor}");
            }
        }
    }

    #[test]
    fn a_tie_goes_to_the_even_double_and_what_is_past_a_tie_does_not() {
        let tie = 2_i128.pow(54) + 2;
        assert_eq!(nearest(tie, 1).to_bits(), 18_014_398_509_481_984_f64.to_bits());
        assert_eq!(nearest(tie * 3 + 1, 3).to_bits(), 18_014_398_509_481_988_f64.to_bits());
        assert_eq!(nearest(tie * 3 - 1, 3).to_bits(), 18_014_398_509_481_984_f64.to_bits());
    }
}
