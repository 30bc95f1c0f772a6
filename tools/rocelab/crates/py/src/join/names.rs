// SPDX-License-Identifier: GPL-2.0-or-later
//! Names as small numbers.

/// A file may not fill our memory with names.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// The number of a name; `None` when there are too many.
    pub(super) fn index(&mut self, name: &str) -> Option<u16> {
        let at = self.0.iter().position(|known| known == name);
        let at = at.or_else(|| {
            (self.0.len() < MOST).then(|| {
                self.0.push(name.to_owned());
                self.0.len() - 1
            })
        })?;
        u16::try_from(at).ok()
    }

    pub(super) fn name(&self, index: u16) -> Option<&str> {
        self.0.get(usize::from(index)).map(String::as_str)
    }
}
