// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers names, so that records hold no strings.

/// Limit of names, so that a file cannot fill the memory with them.
const MAX_NAMES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct NameTable(Vec<String>);

impl NameTable {
    /// The number of a name; `None` if there are too many names.
    pub(super) fn index(&mut self, name: &str) -> Option<u16> {
        let at = self.0.iter().position(|known| known == name);
        let at = at.or_else(|| {
            (self.0.len() < MAX_NAMES).then(|| {
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
