//! Arithmetic at the edges of 64 bits, exact comparison, and the text of doubles.

use std::cmp::Ordering;

use super::*;

fn number(text: &str) -> Number {
    Number::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
}

fn shown(number: Option<Number>) -> Option<String> {
    number.map(|number| number.to_string())
}

#[test]
fn integers_stay_exact_while_64_bits_hold_them() {
    let sum = number("9223372036854775807").plus(number("1"));
    assert_eq!(shown(sum).as_deref(), Some("9223372036854775808"));
    let top = number("18446744073709551614").plus(number("1"));
    assert_eq!(shown(top).as_deref(), Some("18446744073709551615"));
    let product = number("4294967296").times(number("4294967295"));
    assert_eq!(shown(product).as_deref(), Some("18446744069414584320"));
    assert_eq!(shown(number("2").to_the_power_of(number("63"))).as_deref(), Some("9223372036854775808"));
    assert_eq!(shown(number("-9223372036854775808").absolute()).as_deref(), Some("9223372036854775808"));
    let exact = number("9007199254740993").divided_by(number("1"));
    assert_eq!(shown(exact).as_deref(), Some("9007199254740993"));
}

#[test]
fn beyond_64_bits_the_nearest_double_goes_on() {
    let sum = number("18446744073709551615").plus(number("1"));
    assert_eq!(shown(sum).as_deref(), Some("18446744073709552000"));
    let product = number("18446744073709551615").times(number("18446744073709551615"));
    assert_eq!(shown(product).as_deref(), Some("3.402823669209385e+38"));
}

#[test]
fn the_sign_of_a_power_follows_the_exact_exponent() {
    for (base, exponent, power) in [
        ("-1", "9007199254740993", "-1"),
        ("-1", "9007199254740992", "1"),
        ("-1", "-9007199254740993", "-1"),
        ("-1", "18446744073709551615", "-1"),
        ("1", "9007199254740993", "1"),
        ("0", "9007199254740993", "0"),
        ("-2", "63", "-9223372036854775808"),
        ("-2", "65", "-36893488147419103000"),
        ("-2", "-1", "-0.5"),
        ("-0.5", "2", "0.25"),
    ] {
        let found = number(base).to_the_power_of(number(exponent));
        assert_eq!(shown(found).as_deref(), Some(power), "{base} ** {exponent}");
    }
    assert_eq!(shown(Number::Float(-1.0).to_the_power_of(number("9007199254740993"))).as_deref(), Some("-1"));
    // A base so near to one stays finite under an exponent that no double holds.
    let near_one = Number::Float(-1.000_000_000_000_000_2);
    assert!(near_one.to_the_power_of(number("9007199254740993")).unwrap().as_float() < -7.0);
}

#[test]
fn a_quotient_is_exact_or_the_nearest_double() {
    for (dividend, divisor, quotient) in [
        ("9007199254740994", "2", Number::Int(4_503_599_627_370_497)),
        ("9007199254740993", "3", Number::Int(3_002_399_751_580_331)),
        ("-9223372036854775808", "-1", Number::Large(9_223_372_036_854_775_808)),
        ("7", "2", Number::Float(3.5)),
        ("9007199254740993", "2", Number::Float(4_503_599_627_370_496.0)),
        ("9007199254740995", "2", Number::Float(4_503_599_627_370_498.0)),
        // Divided as doubles, these would be 3002399751580332, its opposite and 2048.
        ("9007199254740995", "3", Number::Float(3_002_399_751_580_331.5)),
        ("9007199254740995", "-3", Number::Float(-3_002_399_751_580_331.5)),
        ("18446744073709551615", "9007199254740993", Number::Float(2_047.999_999_999_999_8)),
        ("18446744073709551615", "18446744073709551614", Number::Float(1.0)),
        ("1", "18446744073709551615", Number::Float(5.421_010_862_427_522e-20)),
    ] {
        let found = number(dividend).divided_by(number(divisor)).unwrap();
        assert_eq!(format!("{found:?}"), format!("{quotient:?}"), "{dividend} / {divisor}");
    }
}

#[test]
fn what_was_rounded_is_no_integer() {
    let beyond = number("9007199254740993");
    let half = number("0.5");
    for found in [
        beyond.times(half),
        beyond.plus(half),
        beyond.minus(half),
        half.times(beyond),
        beyond.divided_by(number("1.5")),
        // One more than a square.
        number("9007199326062757").square_root(),
        number("4503599627370497").square_root(),
    ] {
        assert!(matches!(found, Some(Number::Float(_))), "{found:?}");
    }
    assert!(matches!(number("9007199326062756").square_root(), Some(Number::Int(94_906_266))));
    assert!(matches!(number("18446744065119617025").square_root(), Some(Number::Int(4_294_967_295))));
    assert!(matches!(number("1152921504606846976").times(number("0.5")), Some(Number::Float(_))));
    assert!(matches!(number("9007199254740992").times(half), Some(Number::Int(4_503_599_627_370_496))));
}

#[test]
fn there_is_no_result_that_is_not_finite() {
    assert!(number("1").divided_by(number("0")).is_none());
    assert!(number("0.0").divided_by(number("0.0")).is_none());
    assert!(number("10").to_the_power_of(number("400")).is_none());
    assert!(number("0").to_the_power_of(number("-1")).is_none());
    assert!(number("-8").to_the_power_of(number("0.5")).is_none());
    assert!(number("-1").square_root().is_none());
    assert!(number("1e308").times(number("10")).is_none());
    assert!(Number::parse("1e400").is_none());
}

#[test]
fn only_decimals_are_numbers() {
    for text in ["", "-", "1.", ".5", "inf", "nan", "0x10", "1e", "1_0", " 1", "--1", "1e+", "١"] {
        assert!(Number::parse(text).is_none(), "{text:?}");
    }
    for (text, read) in [("1e3", "1000"), ("-0", "0"), ("-1.50", "-1.5"), ("+7", "7"), ("2.5E-1", "0.25")] {
        assert_eq!(shown(Number::parse(text)).as_deref(), Some(read), "{text:?}");
    }
}

#[test]
fn a_whole_result_is_an_integer() {
    assert!(matches!(number("0.5").plus(number("0.5")), Some(Number::Int(1))));
    assert!(matches!(number("-0.0").negate(), Some(Number::Int(0))));
    assert!(matches!(number("9").square_root(), Some(Number::Int(3))));
}

#[test]
fn comparison_is_exact_between_integers_and_doubles() {
    let float = Number::Float(9_007_199_254_740_992.0);
    assert_eq!(number("9007199254740993").compare(float), Ordering::Greater);
    assert_eq!(float.compare(number("9007199254740993")), Ordering::Less);
    assert_eq!(number("18446744073709551615").compare(Number::Float(1e300)), Ordering::Less);
    assert_eq!(number("-1").compare(Number::Float(-1e300)), Ordering::Greater);
    assert_eq!(number("1").compare(Number::Float(1.5)), Ordering::Less);
    assert_eq!(number("-1").compare(Number::Float(-1.5)), Ordering::Greater);
    assert_eq!(number("1").compare(Number::Float(1.0)), Ordering::Equal);
}

#[test]
fn doubles_read_as_ecmascript_writes_them() {
    for (float, read) in [
        (4.35, "4.35"),
        (-0.000_001, "-0.000001"),
        (0.000_000_1, "1e-7"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123e-20, "1.23e-18"),
        (5e-324, "5e-324"),
        (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
        (333_333_333.333_333_3, "333333333.3333333"),
        (-0.0, "0"),
        (100.0, "100"),
    ] {
        assert_eq!(text::ecmascript(float), read);
    }
}
