//! What the other programs do beside decoding.

use std::io::Read as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    println!("{}", bytes.len());
    Ok(())
}
