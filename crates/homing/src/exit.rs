//! Exit codes, and errors that say what to do.

use std::fmt;
use std::process::ExitCode;

use api::client::ClientError;
use api::tls::TlsRefusal;
use api::{Code, Problem};
use serde_json::json;

/// The exit codes and their meaning. `HELP` and docs/guide.md say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    /// The turn failed or was stopped, or what was asked for was refused.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    NotFound = 3,
    /// No server can be reached, or it does not let us in.
    Unreachable = 4,
    /// Another server has the data directory.
    InUse = 5,
    /// Not now: the same command may work later.
    Later = 6,
    /// Ctrl-C while following; the turn, or the work, goes on.
    Detached = 130,
}

/// Words without the numbers that a system has for its errors; they are said in words before.
pub(crate) fn without_os_error(words: &str) -> String {
    let mut parts = words.split(" (os error ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<i32>().is_ok() => told.push_str(rest),
            _ => told.extend([" (os error ", part]),
        }
    }
    told
}

/// The exit codes, for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done
  1    the turn failed or was stopped, or the request was refused
  2    wrong usage or configuration
  3    there is no such session, message or question
  4    no server can be reached, or it does not let us in
  5    another server has the data directory
  6    not now (disk full, too many requests, server going down): try again later
  130  detached by Ctrl-C; the turn, or the work, goes on

Environment:
  HOMING_URL         a server elsewhere, with HOMING_TOKEN
  HOMING_TOKEN       the token to use
  HOMING_TOKEN_FILE  a file with the token to use; agents find theirs by it
  HOMING_CA          a file with authorities to trust, if --ca is not given
  HOMING_DATA        the data directory, if --data is not given
  NO_COLOR           no colours

Which server: --data, then HOMING_URL, then HOMING_DATA, then one that runs here, then the last `homing login`.";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error of a command: why it cannot do what it was asked for, and what to do about it.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    problem: Option<Box<Problem>>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), hint: None, problem: None }
    }

    /// With advice.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same in other words; a program still gets the server's own.
    pub(crate) fn saying(self, what: impl Into<String>) -> Self {
        Self { what: what.into(), ..self }
    }

    /// True if the server said this.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.code == code)
    }

    /// The object that `--json` prints: the server's own problem, or one in its form.
    pub(crate) fn json(&self) -> serde_json::Value {
        let problem = self.problem.as_ref().and_then(|problem| serde_json::to_value(problem).ok());
        problem.unwrap_or_else(
            || json!({ "code": self.code(), "title": self.what, "detail": self.what, "hint": self.hint }),
        )
    }

    fn code(&self) -> &'static str {
        match self.exit {
            Exit::Usage => "usage",
            Exit::NotFound => "not_found",
            Exit::Unreachable => "unreachable",
            Exit::InUse => "in_use",
            Exit::Later => "unavailable",
            Exit::Done | Exit::Failed | Exit::Detached => "failed",
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for CliError {}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) => refused(problem),
            ClientError::Unreachable { .. } => Self::new(Exit::Unreachable, error.to_string())
                .hint("it may have gone: `homing doctor` looks, `homing up` starts one here"),
            ClientError::Untrusted { ref why, .. } => {
                let hint = distrust_hint(why);
                Self::new(Exit::Unreachable, error.to_string()).hint(hint)
            }
            ClientError::Garbled { .. } => Self::new(Exit::Unreachable, error.to_string()).hint(
                "another program may listen there, or another version of homing: `homing doctor` looks",
            ),
        }
    }
}

fn distrust_hint(why: &TlsRefusal) -> &'static str {
    match why {
        TlsRefusal::UnknownIssuer => {
            "if the server is yours, name the certificate of its authority with --ca FILE or HOMING_CA"
        }
        TlsRefusal::WrongName { .. } => "call the server by a name that its certificate has",
        TlsRefusal::Expired => {
            "whoever runs the server has to renew it; if this machine's clock is wrong, set it"
        }
        TlsRefusal::NotYetValid => "compare the clocks of this machine and the server",
        TlsRefusal::AuthoritysOwn => "make the server a certificate of its own, one without `CA:TRUE`",
        TlsRefusal::Another => "somebody else may listen there; `homing doctor` looks",
        TlsRefusal::NotTls => "is it http:// instead of https://, or another program?",
        TlsRefusal::Other(_) => "`homing doctor` looks for what is wrong",
    }
}

fn refused(problem: Box<Problem>) -> CliError {
    let exit = match problem.code {
        Code::Unauthenticated
        | Code::WrongSignIn
        | Code::BadOrigin
        | Code::BadHost
        | Code::AddressNotYours => Exit::Unreachable,
        Code::TooManyRequests => Exit::Later,
        _ if problem.status == 404 => Exit::NotFound,
        _ if problem.status == 503 => Exit::Later,
        _ => Exit::Failed,
    };
    let hint = match problem.code {
        Code::NotFound => Some(not_found_hint(&problem.detail).to_owned()),
        Code::NotAllowed => Some(grant_hint(&problem.detail)),
        code => {
            // What the server says of this very case is better than advice for the code.
            let is_usual = problem.hint == code.hint();
            hint(code).or_else(|| hint_to_ask_otherwise(code).filter(|_| is_usual)).map(str::to_owned)
        }
    };
    let hint = hint.unwrap_or_else(|| problem.hint.clone());
    CliError { exit, what: problem.detail.clone(), hint: Some(hint), problem: Some(problem) }
}

/// Where to look for something of that kind.
fn not_found_hint(detail: &str) -> &'static str {
    match detail {
        // A turn has a number and no id.
        _ if detail.ends_with("turn") => "`homing log` numbers the turns",
        _ if detail.ends_with("rule") => "`homing approve rules` lists them",
        _ if detail.ends_with("approval") => "`homing approve` lists what is open",
        _ if detail.ends_with("worktree") => "`homing worktree ls` lists them",
        _ if detail.ends_with("person") => "`homing user ls` lists them",
        _ if detail.ends_with("group") => "`homing group ls` lists them",
        _ if detail.ends_with("token") => "`homing token ls` lists them",
        _ if detail.ends_with("reply") => "`homing outbox ls --all` lists them",
        _ => "check the id: `homing ls --all` lists your sessions, `homing queue` their messages",
    }
}

/// The grant that is missing stands in what the server says.
fn grant_hint(detail: &str) -> String {
    let grant = detail.split('`').nth(1).unwrap_or("prompt");
    format!(
        "its owner can give it, `homing show SESSION` says who that is: `homing grant give SESSION NAME {grant}`; a viewer needs another role first, from an admin"
    )
}

/// Both ways out, for a message and for a question where one would go.
pub(crate) const OTHER_AGENT_HINT: &str = "`homing scope set --agent NAME --model NAME` changes it; `homing send --new --agent NAME …` makes a new session, and this one goes on";

/// The server's advice is for programs; where the command line has something better, it says that.
fn hint(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::Unauthenticated => {
            "the token is not this server's, or not good any more: sign in again with `homing login`"
        }
        Code::WrongSignIn => {
            "check the name and the password; if two orgs use the name, `--user ORG/NAME` or your e-mail address; without a password, ask for a link: `homing user link NAME`, then `homing login --link`"
        }
        Code::RightMissing => {
            "what a token is good for was chosen when it was made, and no grant changes that: `homing whoami` says what this one is, `homing login` gets one that is yours"
        }
        Code::NeedsSignIn => "`homing login` signs you in; `homing whoami` says what this token is",
        Code::RoleTooLow => "`homing whoami` says what you are in your org; `homing user ls` whom to ask",
        Code::AgentNotYours => {
            "`homing agents` lists those that you may use; an admin shares one: `homing grant give agent:NAME …`"
        }
        Code::DirectoryNotYours => {
            "`homing roots` lists the directories that you may choose; an admin adds one: `homing roots add DIR --to NAME`"
        }
        Code::WallNotProved => {
            "`homing doctor` says what is missing; `homing up --trust-everyone` lets people in who may read each other's words"
        }
        Code::TooManyOrgSessions => "`homing end SESSION` ends one that nobody needs",
        Code::AddressNotYours => {
            "an address of yours has your own name in it: `homing route explain` shows one"
        }
        Code::SessionEnded => {
            "to go on: `homing send \"…\"` from the same directory, or `homing send --new \"…\"`"
        }
        Code::BadExport => "the file must be one that `homing export` wrote, unchanged",
        Code::UnfitAnswer => {
            "answer a permission with --yes or --no, a choice with --choose N, words with --say TEXT; `homing approve QUESTION` shows what it takes"
        }
        Code::UnknownAgent => "`homing agents` lists the agents there are; name one with --agent NAME",
        Code::OtherAgent => OTHER_AGENT_HINT,
        Code::BadDirectory => "name a directory that is there",
        Code::Invalid => "mend what is named; `--help` says what it may be",
        Code::NotListening => {
            "it waits for a turn of its own; `homing queue interrupt MESSAGE` stops the turn and starts it at once"
        }
        Code::Busy => "wait for the end of the turn, or stop it with `homing stop`",
        Code::ScopeChanging => {
            "`homing show` says what it waits for; `homing scope keep` gives the change up"
        }
        Code::InWorktree => "`homing scope exit` leaves it",
        Code::NotInWorktree => "`homing scope enter NAME` goes into one",
        Code::OtherScope => {
            "go back there first (`homing scope enter NAME`, `homing scope exit`); `homing log` says where it was"
        }
        Code::TouchedSince => {
            "nothing was changed; undo the later turns first, the last one before the others (`homing log` numbers them), or put these files back by hand"
        }
        Code::TooLate => "`homing show`, with its id, says how it stands now",
        Code::Lapsed => {
            "to go on: homing send --session SESSION \"Go on. What you asked for is allowed once.\""
        }
        Code::TooManyOpenSessions => "`homing end SESSION` ends one that you do not need",
        Code::TooMuchOnDisk => "`homing whoami` says how much it is, and how much there may be",
        Code::AttachmentNotTaken => {
            "`homing agents show NAME` says what an agent takes; name the path of a file that lies where it works, and let it open that"
        }
        Code::QueueFull => "`homing queue` shows what waits; `homing queue withdraw MESSAGE` takes one back",
        _ => return None,
    })
}

/// The same of what is rarer: advice for programs that names paths and fields of the API, in words of the command line.
fn hint_to_ask_otherwise(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::TokenInQuery | Code::BadJson | Code::UnsupportedMediaType | Code::BadCursor => {
            "this program and the server are of different versions: `homing --version` says which this is, `homing doctor` which the server is"
        }
        Code::NoSuchPath | Code::MethodNotAllowed => {
            "the server is of another version, which cannot do that: `homing doctor` says which; use a program of the same one"
        }
        Code::NotYoursToAnswer => {
            "`homing approve rules` lists the rule; whoever manages the session can say no: `homing approve no QUESTION`"
        }
        Code::NotYourWords => {
            "whoever manages the session can take it back (`homing queue withdraw MESSAGE`), and say something else"
        }
        Code::IdempotencyConflict => "nothing was done twice; say it once more, as a new request",
        Code::Changed => "look at it again, then decide again",
        Code::UnsureChanges => {
            "`homing undo TURN --dry-run` lists them; `--all` undoes these, too, `--only FILE` only what you name; nothing was changed"
        }
        Code::MergeConflicts => {
            "nothing was changed: merge the branch there into the worktree first, and settle these files in it, or let the agent do so"
        }
        Code::TargetChanged => {
            "nothing was changed: commit these files there, or move them away, then say it again"
        }
        Code::Uncommitted => {
            "nothing was changed: commit these files in the worktree, or bring everything back with `homing worktree apply NAME`"
        }
        Code::CannotOwn => {
            "`homing user ls` lists who may; an admin can change it: `homing user enable NAME`, `homing user role NAME member`"
        }
        Code::LastOwner => "`homing user role NAME owner` makes somebody else an owner first",
        Code::OfferedAlready => {
            "wait for their answer, or take the offer back first: `homing grant keep SESSION`"
        }
        Code::BadAddress => {
            "`homing bindings` lists addresses as they are written; `homing route explain` shows this directory's"
        }
        Code::UnknownModel => {
            "`homing agents show AGENT` lists its models; leave --model out for the agent's own"
        }
        Code::TreeForgotten => {
            "name another turn: `homing diff TURN` says whether what it changed is remembered"
        }
        Code::TooManyRules => {
            "`homing approve rules` lists them, `homing approve rules remove RULE` takes one away"
        }
        Code::TooManyRequests => "wait a few seconds, then say it again",
        Code::Unavailable => "try again in a moment; `homing doctor` says how the server stands",
        Code::Unclear => {
            "look before you say it again: `homing queue` lists what waits, `homing log -n 20` what was accepted last"
        }
        Code::TooManyStreams => {
            "end some of those that follow (`send -f`, `log -f`, `chat`), or come back later"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reads_the_number_of_an_error() {
        for (words, told) in [
            ("Connection refused (os error 111)", "Connection refused"),
            (
                "it went (No such file or directory (os error 2)); look",
                "it went (No such file or directory); look",
            ),
            ("a: (os error 1): b (os error 2)", "a:: b"),
            ("an (os error x) and (os error 2", "an (os error x) and (os error 2"),
        ] {
            assert_eq!(without_os_error(words), told);
        }
    }

    #[test]
    fn whoever_types_is_told_what_can_be_typed() {
        for code in Code::ALL {
            let problem = Problem::new(*code, "there is no such thing");
            let error = CliError::from(ClientError::Refused(Box::new(problem)));
            let hint = error.hint.expect("every refusal says what to do now");
            for of_programs in
                ["/api/", "GET ", "POST ", "PUT ", "DELETE ", "{\"", "Idempotency-Key", "`in_the_way`"]
            {
                assert!(!hint.contains(of_programs), "{code}: {hint}");
            }
        }
    }
}
