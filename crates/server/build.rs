//! Packs the browser app into the program: every file of `ui/dist`, compressed, with what it is, and a hash over all of them.
//!
//! It reads what is committed, and needs no Node. What it writes is included by `src/browser_app.rs`.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where the page says that the hash belongs.
const PLACEHOLDER: &str = "/ui/@/";
/// The program that runs without a page.
const WORKER: &str = "service_worker.js";
/// Of which sources it was built; nobody asks for that.
const STAMP: &str = "sources.sha256";
/// Hexadecimal digits of the hash in an address: enough that no two builds meet.
const HASH_DIGITS: usize = 16;

fn main() -> io::Result<()> {
    let room = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the room is"));
    let dist = room.join("../../ui/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write"));
    let mut files = BTreeMap::new();
    collect(&dist, &dist, &mut files)?;
    files.remove(STAMP);
    let hash = hash_of(&files);
    // The service worker is served at the top of the server, and names files below the hash.
    if let Some(worker) = files.get_mut(WORKER) {
        let text = String::from_utf8(std::mem::take(worker)).map_err(io::Error::other)?;
        *worker = text.replace(PLACEHOLDER, &format!("/ui/{hash}/")).into_bytes();
    }
    // The page itself is not below the hash: it says which one is the newest.
    let page = files.remove("index.html").ok_or_else(|| io::Error::other("ui/dist has no index.html"))?;
    let page = String::from_utf8(page).map_err(io::Error::other)?;
    let page = page.replace(PLACEHOLDER, &format!("/ui/{hash}/"));
    let mut packed = format!("const HASH: &str = {hash:?};\nstatic PAGE: PackedFile = ");
    pack(&out, "index.html", page.as_bytes(), &mut packed)?;
    packed.push_str(";\nstatic FILES: &[(&str, PackedFile)] = &[\n");
    for (name, bytes) in &files {
        let _ = write!(packed, "({name:?}, ");
        pack(&out, name, bytes, &mut packed)?;
        packed.push_str("),\n");
    }
    packed.push_str("];\n");
    fs::write(out.join("browser_app.rs"), packed)
}

fn collect(dir: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, root, files)?;
        } else {
            let name =
                path.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
            files.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

fn hash_of(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in files {
        hash.update(Sha256::digest(name));
        hash.update(Sha256::digest(bytes));
    }
    let mut hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.truncate(HASH_DIGITS);
    hex
}

/// Writes the compressed bytes beside the list, and the list's entry.
fn pack(out: &Path, name: &str, bytes: &[u8], packed: &mut String) -> io::Result<()> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    let to = out.join(format!("{}.gz", name.replace('/', "%")));
    fs::write(&to, gzip.finish()?)?;
    let kind = kind_of(name)?;
    let _ = write!(
        packed,
        "PackedFile {{ kind: {kind:?}, gzip: include_bytes!({:?}) }}",
        to.display().to_string()
    );
    Ok(())
}

fn kind_of(name: &str) -> io::Result<&'static str> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    Ok(match ending {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => {
            return Err(io::Error::other(format!(
                "ui/dist/{name}: a file of what kind? name its ending here"
            )));
        }
    })
}
