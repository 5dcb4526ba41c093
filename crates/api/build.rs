//! Compiles `proto/` with protox, so that no `protoc` is needed, and writes the descriptors and the table of routes beside
//! the generated code.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost_reflect::{DescriptorPool, DynamicMessage, ExtensionDescriptor, MethodDescriptor};
use prost_types::method_options::IdempotencyLevel;
use protox::Compiler;

const INCLUDE_DIR: &str = "../../proto";
const PACKAGE_DIR: &str = "../../proto/switchward/v1";
/// The option that says how a call finds a server.
const ROUTE: &str = "switchward.v1.route";

fn main() -> Result<(), Box<dyn Error>> {
    let mut compiler = Compiler::new([INCLUDE_DIR])?;
    compiler.include_imports(true).include_source_info(true).open_files(proto_files()?)?;
    tonic_prost_build::configure()
        .bytes(".")
        // Equal messages then have equal bytes, which a hash-ordered map would not give.
        .btree_map(".")
        // A session is large, and the reply to a step is moved from one layer of tonic to the next many times.
        .boxed(".switchward.v1.AnswerCheckpointResponse.session")
        .codec_path("crate::codec::Codec")
        .compile_fds(compiler.file_descriptor_set())?;

    // The comments have become Rust documentation; reflection and JSON need the shapes alone.
    compiler.include_source_info(false);
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out_dir.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    fs::write(out_dir.join("routes.rs"), routes(&compiler.descriptor_pool())?)?;
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

/// The table of routes as Rust, sorted by path.
///
/// # Errors
/// A method has no route, or one that its request does not fit.
fn routes(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let option = pool.get_extension_by_name(ROUTE).ok_or_else(|| format!("there is no option {ROUTE}"))?;
    let mut rows = Vec::new();
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let route = route(&method, &option).map_err(|why| format!("{}: {why}", method.full_name()))?;
        let effect = if only_reads(&method) { "Reads" } else { "Changes" };
        rows.push((path, format!("to: RouteTo::{route}, effect: Effect::{effect}")));
    }
    rows.sort();
    let mut text = String::from("&[\n");
    for (path, route) in rows {
        writeln!(text, "    ({path:?}, Route {{ {route} }}),")?;
    }
    text.push(']');
    Ok(text)
}

/// A method's route as an expression.
fn route(method: &MethodDescriptor, option: &ExtensionDescriptor) -> Result<String, String> {
    let options = method.options();
    let value = options.get_extension(option);
    let given: &DynamicMessage = value
        .as_message()
        .filter(|_| options.has_extension(option))
        .ok_or_else(|| format!("the option {ROUTE} is missing"))?;
    if given.has_field_by_name("session") {
        let name = given.get_field_by_name("session").and_then(|name| name.as_str().map(str::to_owned));
        let name = name.unwrap_or_default();
        let field = method.input().get_field_by_name(&name);
        let field = field.filter(|field| field.kind() == prost_reflect::Kind::String && !field.is_list());
        let field = field.ok_or_else(|| format!("the request has no text {name:?}, which {ROUTE} names"))?;
        return Ok(format!("Session {{ field: {} }}", field.number()));
    }
    let to = given.get_field_by_name("to").and_then(|to| to.as_enum_number());
    match to {
        Some(1) => Ok("Catalogue".to_owned()),
        Some(2) => Ok("AllShards".to_owned()),
        Some(3) => Ok("AnyServer".to_owned()),
        Some(_) | None => Err(format!("the option {ROUTE} says nothing that this build knows")),
    }
}

fn only_reads(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.clone().unwrap_or_default();
    options.idempotency_level() == IdempotencyLevel::NoSideEffects
}
