//! Builds the server anew when the console was built anew: its files are part of the program.

fn main() {
    println!("cargo::rerun-if-changed=../../console/dist");
}
