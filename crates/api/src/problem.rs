//! Problems (RFC 9457), and the table of every stable code. Programs read the code, people the words.

use crate::AnsweredBefore;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Why something was not done, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A name for this kind of problem, as a URI.
    #[serde(rename = "type")]
    pub kind: String,
    /// This kind of problem, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The problem of this time, in words.
    pub detail: String,
    /// A stable word for this kind of problem.
    pub code: Code,
    /// The remedy.
    pub hint: String,
    /// The field, parameter or header that is wrong, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Seconds after which it is worth asking again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The answer that the question got before, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<AnsweredBefore>>,
    /// Changes since, if that is why a turn is not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<Box<TouchedSince>>,
    /// Changes of which it is not certain that they are the agent's, if that is why a turn is not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<Box<UnsureChanges>>,
    /// The files because of which the work of a worktree is not brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_the_way: Option<Box<FilesInTheWay>>,
}

/// The files because of which the work of a worktree is not brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilesInTheWay {
    /// Where they are, from the top of the tree; at most 100.
    pub files: Vec<String>,
    /// The number of those that are not listed.
    pub more: u64,
}

/// The files that changed during a turn and of which the agent has not said that it changed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnsureChanges {
    /// Where they are, from the top of the tree; at most 100.
    pub files: Vec<String>,
    /// The number of those that are not listed.
    pub more: u64,
}

/// The files of a turn that later turns, or people, have changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TouchedSince {
    /// Where they are, from the top of the tree; at most 100.
    pub files: Vec<String>,
    /// The number of those that are not listed.
    pub more: u64,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:homing:problem:{}", code.word()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            hint: code.hint().to_owned(),
            field: None,
            retry_after: None,
            answered: None,
            touched: None,
            unsure: None,
            in_the_way: None,
        }
    }

    /// With the field that is wrong.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// With the seconds after which it is worth asking again.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// With better advice than what is good for all problems of this kind.
    #[must_use]
    pub fn advise(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

/// Something in a request that its schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Where.
    pub field: &'static str,
    /// The reason.
    pub reason: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $status:literal, $title:literal, $hint:literal;)*) => {
        /// A stable word for a kind of problem. Words are only ever added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
            /// A code newer than this reader.
            #[serde(other, rename = "other")]
            Other,
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* Self::Other => "other" }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* Self::Other => 500 }
            }

            /// The kind of problem, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* Self::Other => "something else" }
            }

            /// The remedy.
            pub fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* Self::Other => "read the detail" }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    BadJson = "bad_json", 400, "the body is not JSON", "send one JSON document in UTF-8";
    /// A secret stands in the address of the request.
    TokenInQuery = "token_in_query", 400, "the token stands in the address",
        "send it in the header `Authorization: Bearer TOKEN`; addresses end up in logs and histories, so make a new token if others may have seen this one";
    /// The connection is not encrypted, and the server speaks TLS there.
    NeedsTls = "needs_tls", 400, "this server wants https", "use https:// instead of http://";
    /// No credential, or not one of ours.
    Unauthenticated = "unauthenticated", 401, "not signed in",
        "send the header `Authorization: Bearer TOKEN` (the token of this machine's person is in the file `token` of the data directory), or sign in with a one-time link";
    /// Not the right name, password or link.
    WrongSignIn = "wrong_sign_in", 401, "wrong name, password or link",
        "check the name and the password; a name that two orgs use needs the org before it (`ORG/NAME`), or use the e-mail address; if you have no password, ask an admin for a link (`homing user link NAME`)";
    /// The request comes from another site.
    BadOrigin = "bad_origin", 403, "the request comes from another site", "open the page of this server itself; other sites may not use it";
    /// They may see it, but were not given enough on it to do this.
    NotAllowed = "not_allowed", 403, "you may not do this in this session",
        "its owner (`owned_by`), or somebody else who manages it, can give it: PUT /api/v1/sessions/{id}/grants; a viewer needs another role first, from an admin";
    /// The credential is not good for this.
    RightMissing = "right_missing", 403, "this token may not do this",
        "what this token may do was chosen when it was made, and no grant changes that: use one that has this right, make one (POST /api/v1/tokens) or sign in yourself";
    /// A token makes no way in that would outlast it.
    NeedsSignIn = "needs_sign_in", 403, "only somebody who is signed in may do this",
        "sign in yourself (`homing login`, or in a browser), and do it there: what lets somebody in for good is not made with a token";
    /// Only somebody who is more in the org may.
    RoleTooLow = "role_too_low", 403, "your role does not allow this", "ask an admin of your org";
    /// The agent is not one that this person may use.
    AgentNotYours = "agent_not_yours", 403, "you may not use this agent",
        "use another agent (GET /api/v1/agents), or ask an admin to share this one with you";
    /// The directory is under none that this person may choose.
    DirectoryNotYours = "directory_not_yours", 403, "you may not choose this directory",
        "choose one below those that GET /api/v1/me lists, leave it out to get one of its own, or ask an admin to add it";
    /// The credential is for one turn only, and this is something else.
    BoundElsewhere = "bound_elsewhere", 403, "this token is for one turn only",
        "an agent's own credential reads and talks to its own session while its turn lasts, and nothing more";
    /// A rule leaves the question to others.
    NotYoursToAnswer = "not_yours_to_answer", 403, "somebody else has to answer this",
        "the detail says who may answer; GET /api/v1/approvals/rules shows the rule";
    /// Only its sender may change the words of a message.
    NotYourWords = "not_your_words", 403, "only the sender may change a message", "withdraw it, if you manage the session, and say something yourself";
    /// The address names another person or client, or its scheme is another door's.
    AddressNotYours = "address_not_yours", 403, "this is somebody else's address",
        "use an address with your own name in it (GET /api/v1/me says how you are called), of one of the schemes cli, web, api, acp, mcp";
    /// There is no such thing, or not for this caller.
    NotFound = "not_found", 404, "not found", "check the id; lists show what there is";
    /// There is no such path.
    NoSuchPath = "no_such_path", 404, "no such path", "GET /api/v1/openapi.json says which paths there are";
    /// The path does not know this method.
    MethodNotAllowed = "method_not_allowed", 405, "this path does not know this method", "the header `Allow` says which methods there are";
    /// The request did not arrive in time.
    TooSlow = "too_slow", 408, "the request did not arrive in time", "send the whole request at once";
    /// The session that was named has ended.
    SessionEnded = "session_ended", 409, "the session has ended",
        "start anew: say it to its conversation, or to {\"new\": {}}";
    /// The key was used for another request.
    IdempotencyConflict = "idempotency_conflict", 409, "this Idempotency-Key was used for another request",
        "use a fresh Idempotency-Key for a new request; the same one only to repeat the very same request";
    /// Its subject has gone on.
    TooLate = "too_late", 409, "too late: it has gone on", "look at the receipt: it has gone on in the meantime";
    /// The question's turn was interrupted, so the agent no longer waits for an answer.
    Lapsed = "lapsed", 409, "nobody waits for this answer any more",
        "its turn is over; to go on, say so in a message of its own, for instance: Go on. What you asked for is allowed once.";
    /// Somebody changed it in between.
    Changed = "changed", 409, "somebody changed it in the meantime", "read it again, then decide again";
    /// No agent is there that would hear it now.
    NotListening = "not_listening", 409, "nobody listens just now",
        "let it wait for a turn of its own, or let it interrupt the turn: {\"delivery\": \"interrupt\"}";
    /// A turn is under way, or something else that must be over first.
    Busy = "busy", 409, "something else is under way", "wait for the end of the turn, or stop it";
    /// Another change of scope waits.
    ScopeChanging = "scope_changing", 409, "another change of scope waits",
        "let that change happen, or give it up, then ask again";
    /// The session is in a worktree.
    InWorktree = "in_worktree", 409, "the session is in a worktree", "leave it first (POST /api/v1/sessions/{id}/scope)";
    /// The session is in no worktree.
    NotInWorktree = "not_in_worktree", 409, "the session is in no worktree", "enter one first (POST /api/v1/sessions/{id}/scope)";
    /// It belongs to another scope than that of now.
    OtherScope = "other_scope", 409, "the session works somewhere else now", "take the session back to the directory or worktree that this belongs to, then ask again";
    /// The session of a conversation has another agent or model than the sender says.
    OtherAgent = "other_agent", 409, "the session has another agent or model",
        "change it (POST /api/v1/sessions/{id}/scope), or start a new session that takes the conversation over: {\"new\": {\"conversation\": …}}; nothing was said";
    /// Something has touched the files of a turn since.
    TouchedSince = "touched_since", 409, "files were changed again since",
        "undo the later turns first, the last one before the others, or put the files in `touched` back by hand; nothing was changed";
    /// It is not certain that the agent has changed the files of a turn.
    UnsureChanges = "unsure_changes", 409, "it is not certain that these are the agent's changes",
        "say that all are meant (`all`), or which (`only`); GET /api/v1/sessions/{id}/undo lists them; nothing was changed";
    /// Files were changed both in a worktree and where its work was to come to.
    MergeConflicts = "merge_conflicts", 409, "files were changed on both sides",
        "merge the branch there into the worktree first and settle the files in `in_the_way` in it, or let the agent do so; nothing was changed";
    /// Files that the work of a worktree was to be written to are changed there.
    TargetChanged = "target_changed", 409, "uncommitted changes are in the way",
        "commit the files in `in_the_way` there, or move them away, then ask again; nothing was changed";
    /// Something in a worktree is not committed, and only commits are merged.
    Uncommitted = "uncommitted", 409, "the worktree has uncommitted changes",
        "commit the files in `in_the_way` in the worktree, or bring everything back with `apply`; nothing was changed";
    /// The scope has changed while it was looked up.
    Stale = "stale", 409, "the scope has changed meanwhile", "ask again";
    /// A worktree stays as it is, because something is in the way.
    WorktreeTrouble = "worktree_trouble", 409, "something is in the way of the worktree",
        "read the detail: git or a script has said what is in the way; nothing of it was lost";
    /// The conversation is here already.
    AlreadyImported = "already_imported", 409, "this conversation is here already", "go on in the session that the detail names";
    /// Somebody or something is called so already.
    Taken = "taken", 409, "this name is taken", "choose another name";
    /// An org always has an owner who can come in.
    LastOwner = "last_owner", 409, "an org needs an owner", "make somebody else an owner first";
    /// Whoever is to own a session is disabled, or a viewer.
    CannotOwn = "cannot_own", 409, "this person cannot own a session",
        "choose somebody who can come in and is at least a member (GET /api/v1/users), or let an admin change that first";
    /// Whoever is to own a session owns it.
    OwnsAlready = "owns_already", 409, "it is theirs already", "name somebody else: there is nothing to hand over";
    /// The session is offered to somebody who has not answered yet.
    OfferedAlready = "offered_already", 409, "it is offered to somebody already",
        "wait for their answer, or take the offer back first (DELETE /api/v1/sessions/{id}/hand-over)";
    /// Nobody has shown that agents cannot reach what is not theirs.
    WallNotProved = "wall_not_proved", 409, "agents could read the server's data",
        "`homing doctor` says what is missing; `trust_everyone = true` (--trust-everyone) lets people in who may read each other's words";
    /// The body is too large.
    TooLarge = "too_large", 413, "the request is too large", "send less than 1 MiB of text; put longer words into a file the agent can read";
    /// The body is not said to be JSON.
    UnsupportedMediaType = "unsupported_media_type", 415, "the body is not marked as JSON", "send `Content-Type: application/json`";
    /// The request was meant for another server.
    BadHost = "bad_host", 421, "this server does not go by this name",
        "use the address that the server printed at its start, or add the name to its allowed hosts";
    /// Something about the request is wrong.
    Invalid = "invalid", 422, "invalid request", "mend the field; GET /api/v1/openapi.json says what it may be";
    /// Not an export, or a broken one.
    BadExport = "bad_export", 422, "this file is no export",
        "send a file as GET /api/v1/sessions/{id}/export gives it, whole and unchanged";
    /// An export of a version that is not known here.
    UnknownVersion = "unknown_version", 422, "an export of another version",
        "use a server of the version that made it, or a newer one";
    /// It is no answer to what was asked.
    UnfitAnswer = "unfit_answer", 422, "this does not answer the question", "the question's `form` and `options` say which answers it takes; nothing was changed";
    /// Not an address, or not in its canonical spelling.
    BadAddress = "bad_address", 422, "not an address",
        "write scheme:PART/PART with every byte but letters, digits and . _ ~ - as % and two upper-case hex digits";
    /// Not a cursor that a page of this list has given.
    BadCursor = "bad_cursor", 422, "not a cursor", "use the `next` of the page before as it is, or leave it out";
    /// No agent of this name.
    UnknownAgent = "unknown_agent", 409, "there is no such agent", "GET /api/v1/agents says which agents there are";
    /// The agent offers no model of this name.
    UnknownModel = "unknown_model", 409, "the agent has no such model", "GET /api/v1/agents says which models an agent offers";
    /// No session can be made in this directory.
    BadDirectory = "bad_directory", 409, "this directory cannot be used", "name an absolute path to a directory that is there";
    /// The session's agent does not take something that goes along.
    AttachmentNotTaken = "attachment_not_taken", 409, "the agent does not take this",
        "GET /api/v1/agents says what each agent takes (`images`, `files`); every agent reads files that are text";
    /// Too many messages of this session are unfinished.
    QueueFull = "queue_full", 429, "the queue is full", "wait until some are done, or withdraw some";
    /// Too many open sessions.
    TooManyOpenSessions = "too_many_open_sessions", 429, "too many open sessions", "end some that you do not need";
    /// The org has too many open sessions.
    TooManyOrgSessions = "too_many_org_sessions", 429, "the org has too many open sessions",
        "end some that you do not need, or ask an admin to raise the limit";
    /// Something takes more room on the disk than one person may have.
    TooMuchOnDisk = "too_much_on_disk", 429, "this would take too much room",
        "make room where the detail says, or ask whoever runs the server to raise the bound that it names";
    /// Nobody remembers the files of a turn.
    TreeForgotten = "tree_forgotten", 409, "the files of that turn are not remembered", "name another turn: GET /api/v1/sessions/{id}/changes?turn= says which are";
    /// The org has too many rules.
    TooManyRules = "too_many_rules", 429, "too many rules", "remove some that nobody needs: GET /api/v1/approvals/rules";
    /// Too many requests in a short time.
    TooManyRequests = "too_many_requests", 429, "too many requests", "wait as long as `Retry-After` says, then go on";
    /// A mistake of ours.
    Internal = "internal", 500, "a mistake of ours", "please report it, with the correlation id";
    /// The disk is full.
    DiskFull = "disk_full", 503, "the disk is full", "make room; reading goes on, and so does the rest once there is room";
    /// Not now.
    Unavailable = "unavailable", 503, "not available just now", "try again in a moment, with the same Idempotency-Key";
    /// It may or may not have been accepted.
    Unclear = "unclear", 503, "not known whether it was accepted",
        "ask again with the same Idempotency-Key: it is accepted once in any case";
    /// Too many streams are open.
    TooManyStreams = "too_many_streams", 503, "too many streams are open", "close some, or come back later";
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let words = Self::ALL.iter().map(|code| code.word());
        let text = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
        text.description(Some("A stable word for a kind of problem. Words are only ever added.")).into()
    }
}

impl ToSchema for Code {}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}

impl std::error::Error for Problem {}
