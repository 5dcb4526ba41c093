//! Compiles `proto/` with protox, so that no `protoc` is needed, and writes the descriptors beside the generated code.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

const INCLUDE_DIR: &str = "../../proto";
const PACKAGE_DIR: &str = "../../proto/switchward/v1";

fn main() -> Result<(), Box<dyn Error>> {
    let mut descriptors = protox::compile(proto_files()?, [INCLUDE_DIR])?;
    tonic_prost_build::configure()
        .bytes(".")
        // Equal messages then have equal bytes, which a hash-ordered map would not give.
        .btree_map(".")
        .codec_path("crate::codec::Codec")
        .compile_fds(descriptors.clone())?;

    // The comments have become Rust documentation; reflection and JSON need the shapes alone.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out_dir.join("descriptors.bin"), descriptors.encode_to_vec())?;
    Ok(())
}

/// The package's files, sorted so that equal sources give equal output.
fn proto_files() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PACKAGE_DIR}");
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(PACKAGE_DIR))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
