//! Strings: borrowed from the template or the context, or built and shared.

use std::ops::Deref;
use std::rc::Rc;

use crate::error::Outcome;
use crate::meter::Meter;

#[derive(Clone)]
pub(crate) enum Text<'r> {
    Given(&'r str),
    Built(Rc<str>),
}

impl<'r> Text<'r> {
    pub(crate) fn build(text: &str, meter: &mut Meter) -> Outcome<Text<'r>> {
        meter.string(text.len())?;
        Ok(Text::Built(text.into()))
    }

    /// The two strings after each other.
    pub(crate) fn joined(left: &str, right: &str, meter: &mut Meter) -> Outcome<Text<'r>> {
        meter.string(left.len() + right.len())?;
        Ok(Text::Built([left, right].concat().into()))
    }

    /// The part between two byte offsets, borrowed again where it can be.
    pub(crate) fn part(&self, from: usize, to: usize, meter: &mut Meter) -> Outcome<Text<'r>> {
        match self {
            Text::Given(text) => Ok(Text::Given(&text[from..to])),
            Text::Built(text) => Text::build(&text[from..to], meter),
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Given(text) => text,
            Text::Built(text) => text,
        }
    }
}
