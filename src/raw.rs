// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side wrote, out of bytes: structs of intf.h and strings of C.

use std::ffi::c_char;

/// A struct of intf.h, of which all are made of integers alone; none if `bytes` has
/// another size.
pub(crate) fn read<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are as many bytes as the struct has, and any are valid for integers.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A string of C, as far as it goes. Its characters are signed or not, as the
/// architecture has it.
pub fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = (chars.iter().map(|c| *c as u8))
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_nul_or_with_its_array() {
        let chars = |bytes: &[u8]| bytes.iter().map(|b| *b as c_char).collect::<Vec<_>>();
        assert_eq!(text(&chars(b"abc\0def")), "abc");
        assert_eq!(text(&chars(b"abc")), "abc");
        assert_eq!(text(&chars(b"")), "");
        assert_eq!(text(&chars(b"\xff\0")), "\u{fffd}");
    }

    #[test]
    fn bytes_of_another_size_are_no_struct() {
        assert_eq!(read::<[u8; 2]>(&[1, 2]), Some([1, 2]));
        assert_eq!(read::<[u8; 2]>(&[1]), None);
        assert_eq!(read::<[u8; 2]>(&[1, 2, 3]), None);
    }
}
