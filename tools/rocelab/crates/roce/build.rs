// SPDX-License-Identifier: GPL-2.0-or-later
//! Generates Rust from the tables at the top of the checkout: opcodes and stages.
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

// (the package's link to tables/ at the top of the checkout: a source distribution has no other)
const TABLES: &str = "../../src/rocelab/tables";

/// The rows of a table, without comments and column names.
fn rows(name: &str) -> Vec<String> {
    let path = format!("{TABLES}/{name}");
    println!("cargo::rerun-if-changed={path}");
    let table = fs::read_to_string(&path).expect("tables/ is at the top of the checkout");
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(str::to_owned).collect()
}

fn write(name: &str, rust: &str) {
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join(name), rust).expect("OUT_DIR is writable");
}

/// `read_request` to `ReadRequest`.
fn camel(word: &str) -> String {
    word.split('_')
        .flat_map(|part| {
            let (head, tail) = part.split_at(1);
            [head.to_uppercase(), tail.to_owned()]
        })
        .collect()
}

fn opcodes() -> String {
    let mut rust = String::from("static TABLE: &[Opcode] = &[\n");
    for line in rows("opcodes.csv") {
        let columns: Vec<&str> = line.split(',').collect();
        let [code, name, class, position, headers] = columns[..] else {
            panic!("opcodes.csv: five columns expected in {line:?}");
        };
        let headers = headers
            .split_whitespace()
            .map(|header| format!("Header::{}", camel(&header.to_lowercase())))
            .collect::<Vec<_>>()
            .join(", ");
        writeln!(
            rust,
            "    Opcode::new({code}, {name:?}, Class::{}, Position::{}, &[{headers}]),",
            camel(class),
            camel(position)
        )
        .expect("a String takes any text");
    }
    rust + "];\n"
}

/// Stage names by direction, and the index of the stage that the network device ends.
fn stages() -> String {
    let table = rows("stages.csv");
    let stages: Vec<[&str; 3]> = table
        .iter()
        .map(|line| {
            let mut columns = line.split(',');
            std::array::from_fn(|_| columns.next().expect("stages.csv: direction, stage, event"))
        })
        .collect();
    let of = |wanted: &str| -> Vec<[&str; 3]> {
        stages.iter().filter(|[direction, ..]| *direction == wanted).copied().collect()
    };
    let (tx, rx) = (of("tx"), of("rx"));
    assert_eq!(tx.len() + rx.len(), stages.len(), "stages.csv: the direction is tx or rx");
    let mut rust = String::new();
    for (name, what, stages) in [("TX", "sent", &tx), ("RX", "received", &rx)] {
        let names: Vec<&str> = stages.iter().map(|[_, stage, _]| *stage).collect();
        writeln!(
            rust,
            "/// Stages of a {what} packet, in the order in which it passes them.\n\
             pub const {name}_STAGES: [&str; {}] = {names:?};",
            names.len()
        )
        .expect("a String takes any text");
    }
    let last = tx.iter().position(|[.., event]| *event == "start_xmit");
    let last = last.expect("stages.csv: one stage ends with start_xmit");
    writeln!(
        rust,
        "/// Index of the sent stage that ends when the network device gets the packet.\n\
         pub(super) const START_XMIT: usize = {last};\n\
         /// The larger number of stages of the two directions.\n\
         pub(super) const STAGES_MAX: usize = {};",
        tx.len().max(rx.len())
    )
    .expect("a String takes any text");
    rust
}

fn main() {
    write("opcodes.rs", &opcodes());
    write("stages.rs", &stages());
}
