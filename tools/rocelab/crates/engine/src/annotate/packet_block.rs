// SPDX-License-Identifier: GPL-2.0-or-later
//! Adds comments to a block of pcapng.

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
/// The length of a block's type and first length, and of its last length.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// The fields of an enhanced (or obsolete) packet block before the packet.
const FIXED: usize = 20;
/// The offset of a section header's options: after the magic, the version and the section length.
const SECTION_OPTIONS: usize = HEAD + 16;

/// A section's byte order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    pub(super) big: bool,
}

impl Order {
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    }

    pub(super) fn put16(self, to: &mut Vec<u8>, number: u16) {
        to.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    pub(super) fn put32(self, to: &mut Vec<u8>, number: u32) {
        to.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    /// Writes an option and its padding; skips a value that is too long for an option.
    pub(super) fn put_option(self, to: &mut Vec<u8>, code: u16, value: &[u8]) {
        let Ok(len) = u16::try_from(value.len()) else { return };
        self.put16(to, code);
        self.put16(to, len);
        to.extend(value);
        to.resize(to.len().next_multiple_of(4), 0);
    }

    pub(super) fn put_end(self, to: &mut Vec<u8>) {
        self.put16(to, OPT_END);
        self.put16(to, 0);
    }
}

/// The end of a block's options.
struct End {
    /// Offset of `opt_endofopt`, or of the block's last length.
    at: usize,
    /// Whether there is an `opt_endofopt`.
    marked: bool,
}

/// Walks the options from `at` on and collects the comments; `None` if the options are malformed.
fn find_end<'a>(
    block: &'a [u8],
    order: Order,
    mut at: usize,
    comments: &mut Vec<&'a [u8]>,
) -> Option<End> {
    let stop = block.len().checked_sub(TAIL)?;
    if at > stop {
        return None;
    }
    while at < stop {
        let (code, len) = (order.u16(block, at)?, usize::from(order.u16(block, at + 2)?));
        if code == OPT_END {
            return Some(End { at, marked: true });
        }
        let next = at + 4 + len.next_multiple_of(4);
        if next > stop {
            return None;
        }
        if code == OPT_COMMENT {
            comments.extend(block.get(at + 4..at + 4 + len));
        }
        at = next;
    }
    Some(End { at, marked: false })
}

/// The packet block with `comments` after its options, except those that it already has; `None` if
/// its options are malformed.
pub(super) fn with_comments(block: &[u8], order: Order, comments: &[String]) -> Option<Vec<u8>> {
    let captured = order.u32(block, HEAD + 12)? as usize;
    let options = captured.checked_next_multiple_of(4)?.checked_add(HEAD + FIXED)?;
    with_options(block, order, options, comments)
}

/// The section header with `comment`, as in `with_comments`.
pub(super) fn section_with_comment(block: &[u8], order: Order, comment: String) -> Option<Vec<u8>> {
    with_options(block, order, SECTION_OPTIONS, &[comment])
}

fn with_options(block: &[u8], order: Order, at: usize, comments: &[String]) -> Option<Vec<u8>> {
    let mut there = Vec::new();
    let end = find_end(block, order, at, &mut there)?;
    let mut made = block.get(..end.at)?.to_vec();
    for comment in comments.iter().filter(|comment| !there.contains(&comment.as_bytes())) {
        order.put_option(&mut made, OPT_COMMENT, comment.as_bytes());
    }
    if made.len() == end.at {
        return Some(block.to_vec());
    }
    if !end.marked {
        order.put_end(&mut made);
    }
    made.extend(block.get(end.at..block.len() - TAIL)?);
    let len = u32::try_from(made.len() + TAIL).ok()?;
    order.put32(&mut made, len);
    let len = if order.big { len.to_be_bytes() } else { len.to_le_bytes() };
    made.get_mut(4..8)?.copy_from_slice(&len);
    Some(made)
}
