// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side wrote, out of bytes: structs of intf.h and strings of C.

use crate::foreign::Foreign;

/// A struct of intf.h, of which all are made of integers alone; none if `bytes` has
/// another size.
pub(crate) fn read<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are as many bytes as the struct has, and any are valid for integers.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A character of C, which is signed or not by the architecture, and signed always in
/// libbpf's bindings.
pub trait Char: Copy {
    /// The same eight bits, without a sign.
    fn byte(self) -> u8;
}

impl Char for i8 {
    fn byte(self) -> u8 {
        self as u8
    }
}

impl Char for u8 {
    fn byte(self) -> u8 {
        self
    }
}

/// A string of C, as far as it goes: names that others chose.
pub fn text<C: Char>(chars: &[C]) -> Foreign {
    let bytes: Vec<u8> = (chars.iter().map(|c| c.byte()))
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_nul_or_with_its_array() {
        let text = |bytes: &[u8]| text(bytes).raw().to_string();
        assert_eq!(text(b"abc\0def"), "abc");
        assert_eq!(text(b"abc"), "abc");
        assert_eq!(text(b""), "");
        assert_eq!(text(b"\xff\0"), "\u{fffd}");
        assert_eq!(super::text(&[97_i8, -1, 0, 98]).raw(), "a\u{fffd}");
    }

    #[test]
    fn bytes_of_another_size_are_no_struct() {
        assert_eq!(read::<[u8; 2]>(&[1, 2]), Some([1, 2]));
        assert_eq!(read::<[u8; 2]>(&[1]), None);
        assert_eq!(read::<[u8; 2]>(&[1, 2, 3]), None);
    }
}
