// SPDX-License-Identifier: GPL-2.0-or-later
//! Decompresses gzip, zstd and lz4, which are recognised by their magic numbers, not by the file name.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read from the file, before decompression, for the progress bar.
pub type Counter = Arc<AtomicU64>;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const LZ4: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// No capture compresses a thousand to one; the limit of deflate is 1032, which zeros reach.
const BOMB_RATIO: u64 = 1000;
const BOMB_FLOOR: u64 = 1 << 30;
/// 2^27 bytes, the limit of the zstd program: enough for `zstd --ultra`.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// The bytes of a capture.
pub type Input = Box<dyn Read + Send + Sync>;

struct Counting<R> {
    inner: R,
    taken: Counter,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

struct Guard<R> {
    inner: R,
    given: u64,
    taken: Counter,
}

/// How [`super::ReadError::Bomb`] travels through `io::Error`.
pub(super) const BOMB: &str = "decompression bomb";

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.given += count as u64;
        if self.given > BOMB_FLOOR && self.given / BOMB_RATIO > self.taken.load(Ordering::Relaxed) {
            return Err(io::Error::other(BOMB));
        }
        Ok(count)
    }
}

/// The frames of an lz4 file, one after the other.
///
/// `FrameDecoder` ends alike at a frame's end mark and where a file is cut between two blocks.
struct Lz4<R: Read> {
    frames: lz4_flex::frame::FrameDecoder<Watched<R>>,
    /// Bytes that the frames before this one took.
    whole: u64,
}

/// Knows how much was read, and whether the end was.
struct Watched<R> {
    inner: R,
    read: u64,
    ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        self.ended = count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.frames.read(buffer)?;
            let input = self.frames.get_ref();
            if count > 0 || (input.ended && input.read == self.whole) {
                return Ok(count);
            }
            if input.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.whole = input.read;
        }
    }
}

/// The decompressed bytes of `raw`; `taken` counts the bytes read from `raw`.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn open_compressed(raw: Input, taken: Counter) -> io::Result<Input> {
    let mut raw = Counting { inner: raw, taken: Arc::clone(&taken) };
    let mut magic = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut magic)?;
    let gzip = magic.starts_with(&GZIP);
    let (zstd, lz4) = (magic == ZSTD, magic == LZ4);
    let whole = Cursor::new(magic).chain(raw);
    Ok(if gzip {
        let inner = flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, whole));
        Box::new(Guard { inner, given: 0, taken })
    } else if zstd {
        let mut inner = zstd::stream::read::Decoder::new(whole)?;
        inner.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Box::new(Guard { inner, given: 0, taken })
    } else if lz4 {
        let input = Watched { inner: whole, read: 0, ended: false };
        let inner = Lz4 { frames: lz4_flex::frame::FrameDecoder::new(input), whole: 0 };
        Box::new(Guard { inner, given: 0, taken })
    } else {
        Box::new(whole)
    })
}
