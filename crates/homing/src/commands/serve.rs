//! `homing serve`: the server without a person in mind, for services.

use anyhow::Result;
use serde_json::json;

use crate::exit::Exit;
use crate::place::Place;
use crate::screen::Screen;
use crate::wiring::{GoWords, ListenArgs, Ready, start_log};

/// Run the server, for services
///
/// Prints its address once it can be asked, and logs to standard error. SIGTERM hands everything over and exits with 0.
/// SIGHUP reads the certificate again, if there is one.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
}

pub(crate) async fn serve(args: ServeArgs, place: &Place, screen: Screen) -> Result<Exit> {
    let config = args.listen.config(place)?;
    start_log(&config, screen)?;
    let words = GoWords::for_service(&config)?;
    let ready = Ready::start(&config, place).await?;
    tracing::info!(url = ready.url(), data = %place.dir.display(), "ready");
    if screen.json {
        screen.object(&json!({ "url": ready.url(), "data": place.dir, "pid": std::process::id() }))?;
    } else {
        screen.line(ready.url())?;
    }
    let looking = ready.look_around(|found| tracing::info!("{found}"));
    ready.until_told_to_go(words).await;
    looking.abort();
    Ok(Exit::Done)
}
