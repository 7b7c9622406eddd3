//! The server put together: store, agents, engine and HTTP door on one data directory, from start to hand-over.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use engine::{
    Engine, LocalCluster, Mint, NewOrg, NewPerson, People, Purpose, RootRow, TokenRow, Trace, Wiring,
};
use kernel::{Grantee, NodeId, OrgId, PersonId, Principal, Role, TokenId};
use processes::SpareSupervisor;
use processes::wall::Unmapped;
use rustix::process::DumpableBehavior;
use server::{BoundServer, Server, Tls, TlsError};
use sha2::{Digest, Sha256};
use store_sqlite::{OpenError, Options, SqliteStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use worktrees::{GroundWorkers, LocalGround, WorkerSetup};

use crate::call_back::TurnFiles;
use crate::config::{Config, TlsTable};
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::own_doctor::OwnDoctor;
use crate::roster::Roster;
use crate::screen::Screen;
use crate::seal::FileSeal;
use crate::system::{MonotonicMint, SystemClock};
use crate::wall::TriedWall;
use crate::{system, time};

/// The time between two looks at the files of the certificate.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(5);

/// The options of a server's start.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ListenArgs {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:4747]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The configuration [default: homing.toml in the data directory, or ~/.config/homing/config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Let people in although it is not proved that agents cannot reach what is not theirs
    #[arg(long)]
    trust_everyone: bool,
    /// The server's certificate, with those that lead to its authority, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// A proxy with TLS is in front, and only it can reach the address
    #[arg(long)]
    behind_proxy: bool,
}

impl ListenArgs {
    /// The configuration in force; what is typed comes first.
    pub(crate) fn config(&self, data_dir: &DataDir) -> Result<Config> {
        let (mut config, _) = Config::load(self.config.as_deref(), &data_dir.path)?;
        if let Some(listen) = &self.listen {
            config.listen = listen.clone();
        }
        config.trust_everyone |= self.trust_everyone;
        if let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) {
            let path = |path: &PathBuf| -> Result<String> {
                Ok(std::path::absolute(path)?.to_string_lossy().into_owned())
            };
            config.tls = TlsTable { certificate: path(certificate)?, key: path(key)? };
        }
        config.behind_proxy |= self.behind_proxy;
        if config.tls.files().is_none() && !config.behind_proxy {
            refuse_exposure(&config.listen)?;
        }
        Ok(config)
    }
}

impl ListenArgs {
    /// The same as arguments, for whoever stands elsewhere: paths are whole.
    pub(crate) fn arguments(&self) -> Result<Vec<OsString>> {
        let mut all = Vec::new();
        if let Some(listen) = &self.listen {
            all.extend(["--listen".into(), OsString::from(listen)]);
        }
        let files = [
            ("--config", &self.config),
            ("--tls-certificate", &self.tls_certificate),
            ("--tls-key", &self.tls_key),
        ];
        for (name, file) in files {
            if let Some(file) = file {
                let whole = std::path::absolute(file).with_context(|| file.display().to_string())?;
                all.extend([name.into(), whole.into_os_string()]);
            }
        }
        let flags = [("--trust-everyone", self.trust_everyone), ("--behind-proxy", self.behind_proxy)];
        all.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| OsString::from(name)));
        Ok(all)
    }
}

/// A server that holds its directory and its address, and is about to answer.
#[derive(Debug)]
pub(crate) struct BoundDaemon {
    engine: Engine,
    bound: BoundServer,
    data_dir: DataDir,
    roster: Arc<Roster>,
    tls: Option<Tls>,
    spare: SpareSupervisor,
}

/// Whatever is done on the ground of sessions: by our own program, behind their walls.
fn trees_of(
    config: &Config,
    data: &Path,
    unmapped: Unmapped,
    spare: SpareSupervisor,
) -> Result<Arc<dyn engine::Trees>> {
    let setup = WorkerSetup {
        exe: system::exe().context("our own program cannot be found")?,
        data: data.to_path_buf(),
        locks: data.join("attempts"),
        wall: crate::wall::around(config, data, unmapped)?,
        spare: Some(spare),
        written_bytes_max: config.worker_written_bytes_max(),
        store_bytes_max: config.snapshot_bytes_per_repository_max(),
        each_max: config.workers_per_person_max(),
    };
    Ok(Arc::new(GroundWorkers::new(setup)))
}

impl BoundDaemon {
    /// Takes the directory, settles what is unfinished, takes the address, and writes down where it is.
    pub(crate) async fn start(config: &Config, data_dir: &DataDir) -> Result<Self> {
        allow_many_files();
        // Nobody of our own user looks into us, or at what we hold open. The wall around agents does not need this; whoever
        // has no wall does.
        if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "other processes of this user can look into the server");
        }
        let mint = Arc::new(MonotonicMint::default());
        let options = Options::new(NodeId::from_bits(mint.bits()), system::host(), system::now());
        let store =
            SqliteStore::open(&data_dir.path, &options).map_err(|error| cannot_open(error, data_dir))?;
        // Whoever reads this file finds nobody until we can be asked.
        data_dir.withdraw();
        // Right after the database: a start that fails below leaves both, or none of it would be needed.
        let seal = FileSeal::of(&data_dir.path)?;
        let push_seed = seal.push_seed();
        if seal.is_new() && is_sealed(&store).await? {
            tracing::error!(
                "{} WAS MISSING beside a database that is not new, and a NEW KEY was made: the audit so far does not verify \
                 with it, and people's own sign-ins for agents stay closed. If you have the old key, stop the server and put it \
                 back now; `homing doctor` says how it stands",
                data_dir.path.join("key").display()
            );
        }
        // Before any agent is started: a server that cannot listen should not have done anything, and agents are told
        // where it is.
        let listener = TcpListener::bind(&*config.listen).await;
        let listener = listener.map_err(|why| cannot_listen(&config.listen, &why))?;
        let tls = config.tls.files().map(Tls::open).transpose().map_err(cannot_encrypt)?;
        let url = server::url_of(listener.local_addr()?, tls.is_some());
        crate::wall::check_people(config, &store).await?;
        let host = store::Credentials::host(&store, first_org(&mint)).await?;
        let unmapped = crate::wall::unmapped(config, host.person);
        let exe = system::exe().context("our own program cannot be found")?;
        let spare = SpareSupervisor::new(exe, crate::wall::kind(config));
        let roster = Roster::make(config, &data_dir.path, unmapped.clone(), Some(&spare))?;
        let ground = LocalGround::of(&data_dir.path);
        let engine = Engine::start(Wiring {
            store: Arc::new(store),
            cluster: LocalCluster::new(),
            agents: roster.ports(),
            default_agent: roster.default_agent().to_owned(),
            ground: Arc::new(ground),
            trees: trees_of(config, &data_dir.path, unmapped.clone(), spare.clone())?,
            scripts: roster.scripts(),
            after_failure: roster.after_failure(),
            // None is built yet: HTTP's people read the log.
            doors: Vec::new(),
            clock: Arc::new(SystemClock),
            mint: mint.clone(),
            seal: Arc::new(seal),
            call_back: Some(Arc::new(TurnFiles { dir: data_dir.path.join("turns"), url })),
            wall: Arc::new(TriedWall::new(config, &data_dir.path, unmapped)?),
            trust_everyone: config.trust_everyone,
            policy: config.policy(),
            limits: config.limits(),
        })
        .await?;
        let bound = open_door(&engine, config, data_dir, &mint, listener, tls.clone(), push_seed).await;
        match bound {
            Ok(bound) => {
                spare.fill();
                Ok(Self { engine, bound, data_dir: data_dir.clone(), roster: Arc::new(roster), tls, spare })
            }
            Err(error) => {
                engine.shutdown().await;
                spare.close().await;
                Err(error)
            }
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        self.bound.url()
    }

    /// The agent of a new session for which none is named.
    pub(crate) fn default_agent(&self) -> &str {
        self.roster.default_agent()
    }

    /// Looks which agents are here, beside everything else, and tells once. Who acts without asking is told at once.
    pub(crate) fn look_around(&self, tell: impl FnOnce(&str) + Send + 'static) -> JoinHandle<()> {
        for agent in self.roster.bypassing() {
            tracing::warn!(agent, "this agent acts WITHOUT ASKING: its configuration says `bypass = true`");
        }
        let roster = self.roster.clone();
        tokio::spawn(async move {
            tell(&roster.found().await);
            // The last thing that only a start does.
            processes::release_start_code();
        })
    }

    /// A link that signs a browser in, once, and an answer when it does so no more.
    pub(crate) async fn sign_in(&self) -> Result<(String, impl Future<Output = ()> + Send + 'static)> {
        Ok(self.bound.sign_in().await?)
    }

    /// Answers until it is told to go; then hands everything over. A second word ends it at once.
    pub(crate) async fn until_told_to_go(self, words: ShutdownSignals) {
        let Self { engine, bound, data_dir, tls, spare, .. } = self;
        let (tell, told) = oneshot::channel();
        let ShutdownSignals { terminate, interrupt, hang_up } = words;
        let renewing = tls.map(|tls| tokio::spawn(keep_certificate(tls, data_dir.clone(), hang_up)));
        tokio::spawn(tell_once(terminate, interrupt, tell));
        bound
            .serve(async {
                // The teller lives until the process ends; if it is gone, so are we.
                let _ = told.await;
            })
            .await;
        if let Some(renewing) = renewing {
            renewing.abort();
            let _ = renewing.await;
        }
        engine.shutdown().await;
        spare.close().await;
        data_dir.withdraw();
    }
}

/// The words that tell a server to go: SIGTERM, and Ctrl-C. One more tells a service to read its certificate again.
#[derive(Debug)]
pub(crate) struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

impl ShutdownSignals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())?, hang_up: None })
    }

    /// The same for a service that speaks TLS. For whoever sits in front of a terminal, SIGHUP means that it was closed.
    pub(crate) fn for_service(config: &Config) -> Result<Self> {
        let renews = config.tls.files().is_some();
        let hang_up = renews.then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self { hang_up, ..Self::listen()? })
    }
}

async fn tell_once(mut terminate: Signal, mut interrupt: Signal, tell: oneshot::Sender<()>) {
    let mut tell = Some(tell);
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let Some(tell) = tell.take() else { break };
        tracing::info!("going: running turns are stopped and handed over; a second signal ends it at once");
        let _ = tell.send(());
    }
    tracing::warn!("ended at once; what was unfinished is settled at the next start");
    std::process::exit(Exit::Failed as i32);
}

/// Uses the certificate that is in the files, whenever it is another one. One that cannot be used is told, and the one
/// before it stays.
async fn keep_certificate(tls: Tls, data_dir: DataDir, mut hang_up: Option<Signal>) {
    let told = async |hang_up: &mut Option<Signal>| match hang_up {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    };
    loop {
        tokio::select! {
            () = tokio::time::sleep(CERTIFICATE_LOOK) => if !tls.has_changed() { continue },
            _ = told(&mut hang_up) => {}
        }
        let renewed = tls.read_again().map_err(|why| cannot_encrypt(why).into()).and_then(|certificate| {
            // First whoever looks for us here has to know both: either may be shown in the next moment.
            data_dir.announce_certificates(&[certificate.fingerprint(), tls.now().fingerprint()])?;
            tls.replace(certificate);
            Ok::<(), anyhow::Error>(())
        });
        match renewed {
            Ok(()) => tracing::info!("the certificate was read again; new connections get it"),
            Err(error) => tracing::warn!(%error, "the certificate stays as it is"),
        }
    }
}

/// True if something in the store was sealed, so that it takes the key that was there then. A start that got no further than its
/// database has sealed nothing.
async fn is_sealed(store: &SqliteStore) -> Result<bool> {
    for org in store::People::orgs(store).await? {
        if store::AuditLog::chain_head(store, org.org).await? != store::ChainHead::default() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The filter of the log. `HOMING_LOG` and `RUST_LOG` come before the configuration.
pub(crate) fn log_filter(config: &Config) -> Result<tracing_subscriber::EnvFilter, CliError> {
    let named = ["HOMING_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let filter = named.unwrap_or_else(|| config.log.clone());
    tracing_subscriber::EnvFilter::try_new(&filter).map_err(|why| {
        CliError::new(Exit::Usage, format!("{filter:?} is not a filter for the log: {why}"))
            .hint("write error, warn, info, debug or trace")
    })
}

/// Log lines on standard error.
pub(crate) fn start_log(config: &Config, screen: Screen) -> Result<()> {
    start_log_to(config, screen.err_has_colours(), std::io::stderr)
}

/// Log lines elsewhere.
pub(crate) fn start_log_to<W>(config: &Config, has_colours: bool, writer: W) -> Result<()>
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = log_filter(config)?;
    tracing_subscriber::fmt()
        .compact()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(has_colours)
        .init();
    Ok(())
}

async fn open_door(
    engine: &Engine,
    config: &Config,
    data_dir: &DataDir,
    mint: &MonotonicMint,
    listener: TcpListener,
    tls: Option<Tls>,
    push_seed: [u8; 32],
) -> Result<BoundServer> {
    let owner = engine.people().host(first_org(mint)).await?;
    let hash = Sha256::digest(data_dir.token_or_fresh()?.as_bytes()).into();
    let token = TokenId::from_bits(mint.bits());
    engine
        .people()
        .add_token(TokenRow::full(token, hash, owner.person, Purpose::Machine, system::now()))
        .await?;
    let owner = engine.people().principal(hash).await?.context("the machine's person can come in")?;
    add_roots(engine.people(), config, &owner).await?;
    if config.hides_clients() {
        tracing::warn!(
            "behind a proxy, but `trusted_proxies` is empty: all clients look like the proxy, and share its limits"
        );
    }
    let mut door = config.door(owner);
    door.program = system::own_program();
    let doctor = OwnDoctor::new(data_dir.path.clone(), config.file.clone(), config.listen.clone());
    door.doctor = Some(Arc::new(doctor));
    if let Some(tls) = &tls {
        data_dir.announce_certificates(&[tls.now().fingerprint()])?;
    }
    door.tls = tls;
    door.oidc = config.oidc().map_err(no_provider)?;
    door.push = config.pushes(push_seed);
    let bound = Server { engine: engine.clone(), config: door }.take(listener);
    let bound = bound.map_err(|why| cannot_listen(&config.listen, &why))?;
    engine.announce(bound.url()).await?;
    data_dir.announce(&bound.url())?;
    Ok(bound)
}

/// The org of a first start, and the person whose machine it is, who owns it.
fn first_org(mint: &MonotonicMint) -> NewOrg {
    let (handle, role) = (system::handle(), Role::Owner);
    let person = PersonId::from_bits(mint.bits());
    let owner = NewPerson { person, handle: handle.clone(), name: None, email: None, role };
    // Added by `add_roots`, which also looks after those who were here before there were any.
    NewOrg { org: OrgId::from_bits(mint.bits()), name: handle, owner, roots: Vec::new() }
}

/// Lets the machine's person choose the directories of the configuration; and if they have none, their home and the one in
/// which the server is started. Never `/` by itself.
async fn add_roots(people: &People, config: &Config, owner: &Principal) -> Result<()> {
    let usual = [Some(system::home()), std::env::current_dir().ok()].into_iter().flatten();
    let usual = usual.filter(|path| owner.roots.is_empty() && path.parent().is_some() && path.is_dir());
    let usual = usual.filter_map(|path| path.to_str().map(str::to_owned));
    for directory in usual.chain(config.roots.iter().cloned()) {
        let canonical = std::fs::canonicalize(&directory).ok();
        let canonical = canonical.as_deref().and_then(|path| path.to_str()).unwrap_or(&directory);
        if owner.roots.iter().any(|root| root == canonical) {
            continue;
        }
        let trace =
            Trace { door: "start", correlation: "start".to_owned(), address: None, key: None, schemes: &[] };
        let root = RootRow { directory: directory.clone(), to: Grantee::Person(owner.person) };
        people.add_root(owner, root, trace).await.map_err(|why| no_root(&directory, &why))?;
    }
    Ok(())
}

pub(crate) fn no_root(directory: &str, why: &dyn std::fmt::Display) -> CliError {
    CliError::new(Exit::Usage, format!("{directory} cannot be a root: {why}"))
        .hint("mend `roots` in the configuration, or HOMING_ROOTS")
}

pub(crate) fn no_provider(why: String) -> CliError {
    CliError::new(Exit::Usage, why).hint("mend [oidc] in the configuration; `homing config` explains it")
}

/// Whoever listens beyond this machine without encryption must have said that somebody else takes care of it.
pub(crate) fn refuse_exposure(listen: &str) -> Result<(), CliError> {
    let addresses: Vec<SocketAddr> =
        listen.to_socket_addrs().map_err(|why| cannot_listen(listen, &why))?.collect();
    if addresses.iter().all(|address| address.ip().is_loopback()) {
        return Ok(());
    }
    let what = format!(
        "{listen} can be reached from other machines, and nothing is encrypted: who listens in could take the tokens, and with \
         them a shell on this machine"
    );
    Err(CliError::new(Exit::Usage, what).hint(
        "give a certificate with --tls-certificate and --tls-key, or listen on 127.0.0.1; where a proxy with TLS is in \
         front and only it can reach the address, say --behind-proxy",
    ))
}

fn cannot_encrypt(why: TlsError) -> CliError {
    CliError::new(Exit::Usage, why.to_string()).hint(why.hint())
}

pub(crate) fn cannot_listen(listen: &str, why: &std::io::Error) -> CliError {
    let error = CliError::new(Exit::Usage, format!("cannot listen on {listen}: {why}"));
    match why.kind() {
        std::io::ErrorKind::AddrInUse => {
            error.hint("another program listens there (`ss -ltnp` says which): stop it, or --listen 127.0.0.1:0 takes a free port")
        }
        _ => error.hint("write --listen HOST:PORT, for instance 127.0.0.1:4747"),
    }
}

/// Why the directory cannot be used; if somebody else has it, who and since when.
pub(crate) fn cannot_open(error: OpenError, data_dir: &DataDir) -> CliError {
    let dir = data_dir.path.display();
    match error {
        OpenError::Held(holder) => {
            let since = api::At(holder.since.0);
            let since = format!("{} ({})", time::full(since), time::ago(since, system::now()));
            let at = holder.url.as_deref().map(|url| format!(", at {url}")).unwrap_or_default();
            let who = format!("process {} on {}{at}, since {since}", holder.pid, holder.host);
            CliError::new(Exit::InUse, format!("{dir} is in use: {who}"))
                .hint("use that server (the other commands find it by themselves), stop it, or name another --data DIR")
        }
        OpenError::Newer { .. } => CliError::new(Exit::Failed, format!("{dir}: {error}"))
            .hint("nothing was changed; use the newer version, or name another --data DIR"),
        OpenError::Damaged(_) => CliError::new(Exit::Failed, format!("{dir}: {error}"))
            .hint("restore a backup with `homing restore FILE`; the damaged file is kept beside it"),
        OpenError::Exposed { .. } => CliError::new(Exit::Usage, error.to_string()).hint(format!(
            "tokens, keys and what people say are in it: make it yours alone (`chown` and `chmod 700 {dir}`), or name another \
             --data DIR"
        )),
        OpenError::NetworkFileSystem { .. } => CliError::new(Exit::Usage, error.to_string())
            .hint("name a directory on a local disk with --data DIR"),
        OpenError::Io(_) => CliError::new(Exit::Failed, format!("{dir}: {error}"))
            .hint("the directory must be there or possible to make, and writable for you"),
    }
}

/// Each connection is an open file, and the usual soft limit of 1,024 would be spent by a thousand watchers. What the
/// system lets us have, we take; if it does not, we go on with less.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: now.maximum, maximum: now.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
