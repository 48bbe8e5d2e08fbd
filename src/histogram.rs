// SPDX-License-Identifier: GPL-2.0-only
//! Histograms of times as the BPF side makes them, policy/profile.h: four buckets to
//! a doubling. Over sockets they go as bucket and count in turn, without the empty ones.

use std::collections::HashMap;

/// Units of the lowest buckets, in bits of ns: PROFILE_UNIT_BITS of policy/profile.h,
/// which tests/policy holds this to.
const UNIT_BITS: u32 = 8;

/// The shortest time in a bucket of the histogram, ns.
pub fn bucket_begins(bucket: u64) -> u64 {
    let (octave, quarter) = (bucket / 4, bucket % 4);
    if octave == 0 {
        return quarter << UNIT_BITS;
    }
    (4 + quarter) << (octave as u32 - 1 + UNIT_BITS)
}

/// Bucket and count in turn, of the counts of all buckets.
pub fn pairs(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    counts
        .enumerate()
        .filter(|(_, count)| *count > 0)
        .flat_map(|(bucket, count)| [bucket as u64, count])
        .collect()
}

/// Bucket and count of each.
pub fn buckets(hist: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    hist.as_chunks().0.iter().map(|[b, n]| (*b, *n))
}

/// The time that a share of all stays within, ns: where their bucket ends, so up to a
/// quarter too long and never too short. 0 of none.
pub fn quantile(hist: &[u64], share: f64) -> u64 {
    let total: u64 = buckets(hist).map(|(_, n)| n).sum();
    let wanted = (share * total as f64).ceil() as u64;
    let mut seen = 0;
    for (bucket, n) in buckets(hist) {
        seen += n;
        if seen >= wanted {
            return bucket_begins(bucket + 1);
        }
    }
    0
}

/// What came since `earlier`.
pub fn since(hist: &[u64], earlier: &[u64]) -> Vec<u64> {
    let before: HashMap<u64, u64> = buckets(earlier).collect();
    buckets(hist)
        .map(|(b, n)| (b, n.saturating_sub(before.get(&b).copied().unwrap_or(0))))
        .filter(|(_, n)| *n > 0)
        .flat_map(|(b, n)| [b, n])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_where_their_bucket_ends() {
        let hist = pairs([0, 98, 0, 2].into_iter());
        assert_eq!(hist, [1, 98, 3, 2]);
        assert_eq!(quantile(&hist, 0.5), bucket_begins(2));
        assert_eq!(quantile(&hist, 0.98), bucket_begins(2));
        assert_eq!(quantile(&hist, 0.99), bucket_begins(4));
        assert_eq!(quantile(&[], 0.5), 0);
    }

    #[test]
    fn since_leaves_out_what_did_not_change() {
        assert_eq!(since(&[1, 98, 3, 2], &[1, 90, 3, 2]), [1, 8]);
        assert_eq!(since(&[1, 98], &[]), [1, 98]);
    }
}
