//! The server's own doctor: the command, run by the server for the person of its machine.
//!
//! It is a process of its own, with the server's environment: what it copies and tries out is nothing that the server should hold, and
//! it ends with whoever asked.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use api::DoctorFindings;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::system;

/// The longest that it may take; a request to the server may not take much longer.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// The most that it says.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The command, and what it is about.
#[derive(Debug)]
pub(crate) struct OwnDoctor {
    data: PathBuf,
    /// The configuration of the server, if it has one.
    config: Option<PathBuf>,
    /// Where the server listens.
    listen: String,
    /// It looks at everything there is: one at a time is enough.
    one: Mutex<()>,
}

impl OwnDoctor {
    /// For the server of this data directory.
    pub(crate) fn new(data: PathBuf, config: Option<PathBuf>, listen: String) -> Self {
        Self { data, config, listen, one: Mutex::new(()) }
    }

    async fn found(&self) -> io::Result<DoctorFindings> {
        let mut command = Command::new(system::exe()?);
        command.arg("--data").arg(&self.data).args(["--json", "doctor", "--listen", &self.listen]);
        if let Some(file) = &self.config {
            command.arg("--config").arg(file);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut said = Vec::new();
        if let Some(output) = child.stdout.take() {
            output.take(ANSWER_BYTES_MAX).read_to_end(&mut said).await?;
        }
        // Whether something is wrong is in what it says.
        child.wait().await?;
        Ok(serde_json::from_slice(&said)?)
    }
}

impl server::Doctor for OwnDoctor {
    fn look(&self) -> Pin<Box<dyn Future<Output = Result<DoctorFindings, String>> + Send + '_>> {
        Box::pin(async move {
            let found = async {
                let _one = self.one.lock().await;
                self.found().await
            };
            match tokio::time::timeout(LOOK_MAX, found).await {
                Ok(found) => found.map_err(|why| format!("the machine could not be looked over: {why}")),
                Err(_) => {
                    Err(format!("looking over the machine took longer than {} seconds", LOOK_MAX.as_secs()))
                }
            }
        })
    }
}
