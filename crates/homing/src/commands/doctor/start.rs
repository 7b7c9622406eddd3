//! The things that a start would be refused for, found by the same functions that refuse them there.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::Finding;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::CliError;
use crate::wiring::{cannot_listen, cannot_open, log_filter, no_provider, no_root};

/// The data directory: whether a start could make it, or take it as it is.
pub(super) fn directory(data_dir: &DataDir) -> Finding {
    let (check, dir) = ("directory", data_dir.path.display());
    let found = match fs::metadata(&data_dir.path) {
        Ok(found) => found,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            return match try_to_make(&data_dir.path) {
                Ok(()) => Finding::ok(check, format!("{dir} is not there yet; `homing up` makes it")),
                Err(why) => Finding::fail(
                    check,
                    format!("{dir} is not there, and cannot be made: {why}"),
                    "make it, for the user who runs the server, or name another --data DIR",
                ),
            };
        }
        Err(why) => {
            return Finding::fail(
                check,
                format!("{dir}: {why}"),
                "make it readable for you, or name another --data DIR",
            );
        }
    };
    if !found.is_dir() {
        return Finding::fail(check, format!("{dir} is not a directory"), "name another --data DIR");
    }
    if let Err(error) = store_sqlite::look_at_directory(&data_dir.path) {
        let error = cannot_open(error, data_dir);
        return Finding::fail(check, error.what, error.hint.unwrap_or_default());
    }
    if rustix::fs::access(&data_dir.path, rustix::fs::Access::WRITE_OK).is_err() {
        return Finding::fail(
            check,
            format!("{dir} cannot be written to"),
            "give it to the user who runs the server",
        );
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Finding::warn(check, format!("{dir} can be entered by others"), format!("chmod 700 {dir}"));
    }
    Finding::ok(check, dir.to_string())
}

/// Makes a directory beside the one that is missing, and takes it away again.
fn try_to_make(missing: &Path) -> std::io::Result<()> {
    let there = missing.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let tried = there.join(format!(".homing-doctor-{}", uuid::Uuid::new_v4().simple()));
    DirBuilder::new().mode(0o700).create(&tried)?;
    fs::remove_dir(&tried)
}

/// A value of the configuration that is well written, and that no server starts with.
pub(super) fn refused_config(config: &Config) -> Option<CliError> {
    log_filter(config).err().or_else(|| config.oidc().map_err(no_provider).err()).or_else(|| {
        config.roots.iter().find_map(|root| {
            let path = Path::new(root);
            let why = match path.is_dir() {
                _ if !path.is_absolute() => "it is not an absolute path",
                true => return None,
                false => "there is no such directory",
            };
            Some(no_root(root, &why))
        })
    })
}

/// The address, if another program listens there. Whether our own server does is not asked: it has it.
pub(super) fn taken(config: &Config, data_dir: &DataDir) -> Option<CliError> {
    if store_sqlite::holder(&data_dir.path).is_ok_and(|holder| holder.is_some()) {
        return None;
    }
    TcpListener::bind(&*config.listen).err().map(|why| cannot_listen(&config.listen, &why))
}
