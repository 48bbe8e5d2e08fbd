// SPDX-License-Identifier: GPL-2.0-only
//! Whole numbers on the command line, within bounds that the error names.

use clap::builder::TypedValueParser;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Takes those of the range.
pub fn whole<T>(range: RangeInclusive<T>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| parse(text, &range)
}

fn parse<T: FromStr + PartialOrd + Display>(
    text: &str,
    range: &RangeInclusive<T>,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        format!("not a whole number in {least}..={most}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_number_is_refused_with_the_bounds() {
        assert_eq!(parse("7", &(1..=8u32)), Ok(7));
        for bad in ["0", "9", "-1", "x", "", "1.5", "99999999999999999999"] {
            let why = parse(bad, &(1..=8u32)).unwrap_err();
            assert_eq!(why, "not a whole number in 1..=8", "{bad}");
        }
    }
}
