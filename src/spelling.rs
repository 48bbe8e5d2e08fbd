// SPDX-License-Identifier: GPL-2.0-only
//! Names that were mistyped.

/// The known name that is likely meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|(distance, other)| *distance <= name.len().max(other.len()) / 3)
        .min()
        .map(|(_, other)| other.to_string())
}

/// For the end of a message.
pub fn did_you_mean(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!(" (did you mean {name}?)"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_is_meant_unless_it_is_far() {
        let of = |name| nearest(name, ["slice_us", "spin", "mode"].into_iter());
        assert_eq!(of("slice_u").as_deref(), Some("slice_us"));
        assert_eq!(of("spni").as_deref(), Some("spin"));
        assert_eq!(of("something"), None);
    }
}
