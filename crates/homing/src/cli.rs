//! The commands that a person can type, and the run of each.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use tokio::runtime;

use crate::background;
use crate::commands::*;
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit, HELP};
use crate::remote::Remote;
use crate::screen::Screen;
use crate::usage;

/// Threads of the server. Its work is waiting; the database and the agents have threads and processes of their own.
const SERVER_THREADS: usize = 2;

/// Every message finds its own session
///
/// `homing up` starts the server; the other commands are its clients. Data goes to standard output, words to standard
/// error.
#[derive(Parser)]
#[command(name = "homing", version, after_help = HELP, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The data directory [default: $HOMING_DATA, or $XDG_DATA_HOME/homing, or ~/.local/share/homing]
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data: Option<PathBuf>,
    /// Certificates of authorities to trust besides the system's, as PEM [default: $HOMING_CA]
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print the API's own objects as JSON, one per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    Up(up::UpArgs),
    Down(down::DownArgs),
    Serve(serve::ServeArgs),
    Service(service::ServiceArgs),
    Send(send::SendArgs),
    Chat(chat::ChatArgs),
    Ls(ls::LsArgs),
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Rename(rename::RenameArgs),
    Stop(stop::StopArgs),
    End(end::EndArgs),
    Fork(fork::ForkArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Scope(scope::ScopeArgs),
    Worktree(worktree::WorktreeArgs),
    Diff(diff::DiffArgs),
    Undo(undo::UndoArgs),
    Redo(redo::RedoArgs),
    Queue(queue::QueueArgs),
    Approve(approve::ApproveArgs),
    Bindings(bindings::BindingsArgs),
    Outbox(outbox::OutboxArgs),
    Route(route::RouteArgs),
    Agents(agents::AgentsArgs),
    Nodes(nodes::NodesArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
    Whoami(whoami::WhoamiArgs),
    User(user::UserArgs),
    Group(group::GroupArgs),
    Token(token::TokenArgs),
    Grant(grant::GrantArgs),
    Roots(roots::RootsArgs),
    Org(org::OrgArgs),
    Audit(audit::AuditArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Doctor(doctor::DoctorArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
}

/// Every command there is, with its arguments.
pub(crate) fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs what was typed and says how it went.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed(error),
    };
    let screen = Screen::new(cli.json);
    let ca = cli.ca.or_else(|| std::env::var_os("HOMING_CA").filter(|ca| !ca.is_empty()).map(PathBuf::from));
    let ended = DataDir::find(cli.data, ca).and_then(|data_dir| dispatch(cli.command, &data_dir, screen));
    match ended {
        Ok(exit) => exit.into(),
        // Whoever read our output has read enough.
        Err(error) if is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            let error = error.downcast::<CliError>().unwrap_or_else(|error| {
                CliError::new(Exit::Failed, format!("{error:#}"))
                    .hint("`homing doctor` looks for what is wrong")
            });
            screen.cli_error(&error);
            error.exit.into()
        }
    }
}

/// Says what is wrong with what was typed, and what could have been meant instead; or prints the help that was asked for.
fn unparsed(error: clap::Error) -> ExitCode {
    let typed: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match usage::refused(&error, &typed, &command()) {
        Some(refused) => {
            Screen::new(typed.iter().any(|word| word == "--json")).cli_error(&refused);
            refused.exit.into()
        }
        None => error.exit(),
    }
}

fn dispatch(command: Command, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let server = || runtime::Builder::new_multi_thread().worker_threads(SERVER_THREADS).enable_all().build();
    match command {
        Command::Up(args) => server()?.block_on(up::up(args, data_dir, screen)),
        Command::Serve(args) => server()?.block_on(serve::serve(args, data_dir, screen)),
        Command::Down(args) => client_runtime()?.block_on(down::down(&args, data_dir, screen)),
        Command::Service(args) => service::service(args, data_dir, screen),
        Command::Backup(args) => client_runtime()?.block_on(backup::backup(&args, data_dir, screen)),
        Command::Restore(args) => restore::restore(&args, data_dir, screen),
        Command::Doctor(args) => client_runtime()?.block_on(doctor::doctor(&args, data_dir, screen)),
        Command::Login(args) => client_runtime()?.block_on(login::login(args, data_dir, screen)),
        Command::Logout(args) => client_runtime()?.block_on(logout::logout(args, screen)),
        Command::Config(args) => config::config(&args, screen),
        Command::Completions(args) => completions::completions(&args, &mut self::command()),
        other => client_runtime()?.block_on(ask(other, data_dir, screen)),
    }
}

/// The commands that are clients of the server.
async fn ask(command: Command, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    if let Command::Send(args) = &command {
        args.check()?;
    }
    let may_offer = matches!(command, Command::Send(_) | Command::Chat(_));
    let remote = match Remote::find(data_dir, screen) {
        Err(error) if may_offer => background::offer(error, data_dir, screen).await?,
        found => found?,
    };
    match command {
        Command::Send(args) => send::send(args, &remote).await,
        Command::Chat(args) => chat::chat(args, &remote).await,
        Command::Ls(args) => ls::ls(&args, &remote).await,
        Command::Show(args) => show::show(&args, &remote).await,
        Command::Log(args) => log::log(&args, &remote).await,
        Command::Rename(args) => rename::rename(args, &remote).await,
        Command::Stop(args) => stop::stop(&args, &remote).await,
        Command::End(args) => end::end(&args, &remote).await,
        Command::Fork(args) => fork::fork(args, &remote).await,
        Command::Export(args) => export::export(&args, &remote).await,
        Command::Import(args) => import::import(args, &remote).await,
        Command::Scope(args) => scope::scope(args, &remote).await,
        Command::Worktree(args) => worktree::worktree(args, &remote).await,
        Command::Diff(args) => diff::diff(&args, &remote).await,
        Command::Undo(args) => undo::undo(&args, &remote).await,
        Command::Redo(args) => redo::redo(&args, &remote).await,
        Command::Queue(args) => queue::queue(args, &remote).await,
        Command::Approve(args) => approve::approve(args, &remote).await,
        Command::Bindings(args) => bindings::bindings(args, &remote).await,
        Command::Outbox(args) => outbox::outbox(args, &remote).await,
        Command::Route(args) => route::route(args, &remote).await,
        Command::Agents(args) => agents::agents(&args, &remote).await,
        Command::Nodes(args) => nodes::nodes(&args, &remote).await,
        Command::Whoami(args) => whoami::whoami(&args, &remote).await,
        Command::User(args) => user::user(args, &remote).await,
        Command::Group(args) => group::group(args, &remote).await,
        Command::Token(args) => token::token(args, &remote).await,
        Command::Grant(args) => grant::grant(args, &remote).await,
        Command::Roots(args) => roots::roots(args, &remote).await,
        Command::Org(args) => org::org(args, &remote).await,
        Command::Audit(args) => audit::audit(args, &remote).await,
        Command::Up(_)
        | Command::Down(_)
        | Command::Serve(_)
        | Command::Service(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Completions(_) => unreachable!("`dispatch` runs these"),
    }
}

fn client_runtime() -> io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_all().build()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near_commands;

    #[test]
    fn what_people_type_instead_leads_to_commands_that_there_are() {
        near_commands::check_other_words(&command());
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
