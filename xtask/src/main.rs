//! xtask.
mod kinds;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["kinds"] => kinds::run(false),
        ["kinds", "--check"] => kinds::run(true),
        _ => anyhow::bail!("usage: cargo xtask kinds [--check]"),
    }
}
