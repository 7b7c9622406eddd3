//! `homing serve`: the server without a person in mind, for services.

use anyhow::Result;
use serde_json::json;

use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::screen::Screen;
use crate::wiring::{BoundDaemon, ListenArgs, ShutdownSignals, start_log};

/// Run the server, for services
///
/// Prints its address once it can be asked, and logs to standard error. SIGTERM hands everything over and exits with 0.
/// SIGHUP reads the certificate again, if there is one.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
}

pub(crate) async fn serve(args: ServeArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let config = args.listen.config(data_dir)?;
    start_log(&config, screen)?;
    let words = ShutdownSignals::for_service(&config)?;
    let ready = BoundDaemon::start(&config, data_dir).await?;
    tracing::info!(url = ready.url(), data = %data_dir.path.display(), "ready");
    if screen.json {
        screen.object(&json!({ "url": ready.url(), "data": data_dir.path, "pid": std::process::id() }))?;
    } else {
        screen.line(ready.url())?;
    }
    let looking = ready.look_around(|found| tracing::info!("{found}"));
    ready.until_told_to_go(words).await;
    looking.abort();
    Ok(Exit::Done)
}
