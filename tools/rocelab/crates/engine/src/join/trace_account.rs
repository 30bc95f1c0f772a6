// SPDX-License-Identifier: GPL-2.0-or-later
//! What is missing from a trace by its own account (docs/formats/rxedump.md): losses, sampling,
//! filters.

use std::collections::HashMap;
use std::io::{self, Read};

use roce::join::Trace;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPT_COMMENT: u16 = 1;
const OPT_FILTER: u16 = 11;
const OPT_OSDROP: u16 = 7;
/// rxedump's blocks of these kinds are shorter; longer ones are skipped.
const LONGEST: u32 = 1 << 17;
const SESSION: &str = "rocelab.rxedump/1 ";
const TOTALS: &str = "rocelab.rxedump.statistics/1 ";

struct Order(bool);

impl Order {
    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.0 { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.0 { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    }

    fn u64(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.0 { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) })
    }

    /// Code and value of each option from `at` on.
    fn options<'a>(
        &'a self,
        body: &'a [u8],
        mut at: usize,
    ) -> impl Iterator<Item = (u16, &'a [u8])> + 'a {
        std::iter::from_fn(move || {
            let (code, len) = (self.u16(body, at)?, usize::from(self.u16(body, at + 2)?));
            let value = body.get(at + 4..at + 4 + len)?;
            at += 4 + len.next_multiple_of(4);
            (code != 0).then_some((code, value))
        })
    }
}

/// The number of a key in a comment that starts with `version`.
fn number(comment: &[u8], version: &str, key: &str) -> Option<u64> {
    let words = std::str::from_utf8(comment).ok()?.strip_prefix(version)?;
    words.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

/// Losses from statistics blocks; the last block of each interface counts.
#[derive(Default)]
struct Account {
    lost: HashMap<u32, u64>,
    /// Lost in nested contexts, on all interfaces. With one interface, `lost` includes it.
    nested: u64,
    /// Lost in earlier sections.
    before: u64,
}

impl Account {
    fn take(&mut self, order: &Order, body: &[u8]) {
        let Some(interface) = order.u32(body, 0) else { return };
        for (code, value) in order.options(body, 12) {
            match code {
                OPT_OSDROP if self.lost.len() < usize::from(u16::MAX) => {
                    self.lost.insert(interface, order.u64(value, 0).unwrap_or_default());
                }
                OPT_COMMENT => {
                    let nested = number(value, TOTALS, "lost_nested").unwrap_or_default();
                    self.nested = self.nested.max(nested);
                }
                _ => {}
            }
        }
    }

    fn total(&self) -> u64 {
        let nested = if self.lost.len() > 1 { self.nested } else { 0 };
        self.lost
            .values()
            .fold(self.before.saturating_add(nested), |sum, lost| sum.saturating_add(*lost))
    }

    /// Ends a section.
    fn close(&mut self) {
        *self = Self { before: self.total(), ..Self::default() };
    }
}

/// Reads what is missing from a pcapng file (plain bytes): records lost, sampling, filters. The default
/// if it has no such account or is not pcapng. Stops where the file is corrupt, which the capture
/// reader reports.
///
/// # Errors
/// If reading fails.
pub fn account(mut input: impl Read) -> io::Result<Trace> {
    let mut order = Order(false);
    let mut lost = Account::default();
    let mut trace = Trace::default();
    let mut head = [0; 12];
    while fill(&mut input, &mut head)? {
        let kind = order.u32(&head, 0).unwrap_or_default();
        if kind == SECTION {
            match order.u32(&head, 8) {
                Some(BYTE_ORDER) => {}
                Some(magic) if magic == BYTE_ORDER.swap_bytes() => order.0 = !order.0,
                _ => break,
            }
            lost.close();
        }
        let len = order.u32(&head, 4).unwrap_or_default();
        if len < 12 || len % 4 != 0 {
            break;
        }
        let rest = u64::from(len - 12);
        if matches!(kind, SECTION | INTERFACE | STATISTICS) && len <= LONGEST {
            let mut body = head[8..].to_vec();
            input.by_ref().take(rest).read_to_end(&mut body)?;
            body.truncate(len as usize - 12);
            match kind {
                SECTION => {
                    let session = order.options(&body, 16).find(|(code, text)| {
                        *code == OPT_COMMENT && text.starts_with(SESSION.as_bytes())
                    });
                    if let Some((_, text)) = session {
                        trace.told = true;
                        trace.sample = number(text, SESSION, "sample").unwrap_or(trace.sample);
                    }
                }
                INTERFACE => {
                    trace.filtered |= order.options(&body, 8).any(|(code, _)| code == OPT_FILTER);
                }
                _ => lost.take(&order, &body),
            }
        } else if io::copy(&mut input.by_ref().take(rest), &mut io::sink())? < rest {
            break;
        }
    }
    trace.lost = lost.total();
    Ok(trace)
}

/// `false` at the end of the input.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
