// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns `opcodes.csv`, the one BTH opcode table, into Rust.
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// `read_request` to `ReadRequest`.
fn camel(word: &str) -> String {
    word.split('_')
        .flat_map(|part| {
            let (head, tail) = part.split_at(1);
            [head.to_uppercase(), tail.to_owned()]
        })
        .collect()
}

fn main() {
    println!("cargo::rerun-if-changed=opcodes.csv");
    let table = fs::read_to_string("opcodes.csv").expect("opcodes.csv lies beside build.rs");
    let mut rust = String::from("static TABLE: &[Opcode] = &[\n");
    let lines = table.lines().filter(|line| !line.starts_with('#')).skip(1);
    for line in lines {
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
    rust.push_str("];\n");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("opcodes.rs"), rust).expect("OUT_DIR can be written");
}
