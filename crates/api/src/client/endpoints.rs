//! One method per endpoint.

use super::{ChangeKey, Client, ClientError, ClientResponse, FactStream};
use crate::*;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The outcome of a change within the time that the server waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeOutcome<T> {
    /// It is so.
    Done(T),
    /// It is safe, and will be decided; this is how things stand now.
    Pending(T),
}

impl<T> ChangeOutcome<T> {
    /// The state of things now, decided or not.
    pub fn into_inner(self) -> T {
        match self {
            Self::Done(now) | Self::Pending(now) => now,
        }
    }

    fn of(answered: ClientResponse<T>) -> Self {
        if answered.status == StatusCode::ACCEPTED {
            Self::Pending(answered.body)
        } else {
            Self::Done(answered.body)
        }
    }
}

/// The answer to work that may take long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoreAnswer<T> {
    /// This has come of it.
    Over(T),
    /// It is safe, and goes on; the session says how far it is. Asked again under the same key it is joined.
    GoesOn(Box<Session>),
}

pub(super) const NO_BODY: Option<&()> = None;
#[derive(Serialize)]
pub(super) struct NoQuery {}

impl Client {
    /// Says something. When this answers, a power cut cannot lose it.
    pub async fn say(&self, message: &NewMessage) -> Result<Receipt, ClientError> {
        let answered = self.change(Method::POST, "/api/v1/messages", Some(message)).await?;
        // A repetition of ours after a lost answer is still the first receipt for whoever called.
        let _ = answered.repeated;
        Ok(answered.body)
    }

    /// The conversation of a session as a file, as far as it is over.
    pub async fn export(&self, session: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.request(Method::GET, &format!("/api/v1/sessions/{session}/export"));
        Ok(self.fetch(request).await?.bytes)
    }

    /// The bytes of an image or a file that went along with a message.
    pub async fn attachment(&self, message: &str, number: u32) -> Result<Vec<u8>, ClientError> {
        let request = self.request(Method::GET, &format!("/api/v1/messages/{message}/attachments/{number}"));
        Ok(self.fetch(request).await?.bytes)
    }

    /// Makes a session with the conversation of such a file.
    pub async fn import(&self, file: Vec<u8>, query: &ImportQuery) -> Result<Made, ClientError> {
        let key = uuid::Uuid::new_v4().simple().to_string();
        let request = self.request(Method::POST, "/api/v1/sessions/import").query(query);
        let request = request.header("Idempotency-Key", key).header("Content-Type", EXPORT_TYPE).body(file);
        Ok(self.send(request).await?.body)
    }

    /// The receipt of a message; waits up to `query.wait` seconds for it to become final.
    pub async fn receipt(&self, message: &str, query: &MessageQuery) -> Result<Receipt, ClientError> {
        self.get(&format!("/api/v1/messages/{message}"), query).await
    }

    /// Changes a message that has not been started.
    pub async fn change_message(
        &self,
        message: &str,
        change: &MessageChange,
    ) -> Result<ChangeOutcome<Receipt>, ClientError> {
        let path = format!("/api/v1/messages/{message}");
        self.change(Method::PATCH, &path, Some(change)).await.map(ChangeOutcome::of)
    }

    /// Takes back a message that has not been started.
    pub async fn withdraw(&self, message: &str) -> Result<ChangeOutcome<Receipt>, ClientError> {
        let path = format!("/api/v1/messages/{message}");
        self.change(Method::DELETE, &path, NO_BODY).await.map(ChangeOutcome::of)
    }

    /// Stops the turn of a message, or takes the message back.
    pub async fn stop(&self, message: &str) -> Result<ChangeOutcome<Receipt>, ClientError> {
        let path = format!("/api/v1/messages/{message}/stop");
        self.change(Method::POST, &path, NO_BODY).await.map(ChangeOutcome::of)
    }

    /// Ends what the turns of a session have left running.
    pub async fn stop_background(
        &self,
        key: &ChangeKey,
        session: &str,
    ) -> Result<ChoreAnswer<StoppedBackground>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/stop-background");
        self.chore(key, Method::POST, &path, NO_BODY).await
    }

    /// A page of sessions, the ones with the newest activity first.
    pub async fn sessions(&self, query: &SessionsQuery) -> Result<Page<Session>, ClientError> {
        self.get("/api/v1/sessions", query).await
    }

    /// Makes a session that nobody has said anything to yet.
    pub async fn make_session(&self, session: &NewSession) -> Result<Made, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/sessions", Some(session)).await?.body)
    }

    /// A session.
    pub async fn session(&self, session: &str) -> Result<Session, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}"), &NoQuery {}).await
    }

    /// Changes what a session is called, or whether lists show it.
    pub async fn change_session(
        &self,
        session: &str,
        change: &SessionChange,
    ) -> Result<Session, ClientError> {
        let path = format!("/api/v1/sessions/{session}");
        Ok(self.change(Method::PATCH, &path, Some(change)).await?.body)
    }

    /// Ends a session.
    pub async fn end(&self, session: &str) -> Result<ChangeOutcome<Session>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/end");
        self.change(Method::POST, &path, NO_BODY).await.map(ChangeOutcome::of)
    }

    /// Lets a session act somewhere or somehow else, when what is under way is over.
    pub async fn change_scope(
        &self,
        session: &str,
        request: &ScopeRequest,
    ) -> Result<ChangeOutcome<Session>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/scope");
        self.change(Method::POST, &path, Some(request)).await.map(ChangeOutcome::of)
    }

    /// Gives up a change of scope that has not begun.
    pub async fn keep_scope(&self, session: &str) -> Result<ChangeOutcome<Session>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/scope");
        self.change(Method::DELETE, &path, NO_BODY).await.map(ChangeOutcome::of)
    }

    /// Puts back what a turn has changed.
    pub async fn undo(&self, session: &str, undo: &UndoTurn) -> Result<ChangeOutcome<Session>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/undo");
        self.change(Method::POST, &path, Some(undo)).await.map(ChangeOutcome::of)
    }

    /// Takes the last undo of a turn back.
    pub async fn redo(&self, session: &str, turn: u32) -> Result<ChangeOutcome<Session>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/redo");
        self.change(Method::POST, &path, Some(&RedoTurn { turn, under: None })).await.map(ChangeOutcome::of)
    }

    /// The work of an undo, which is not done.
    pub async fn preview_undo(&self, session: &str, turn: u32) -> Result<UndoPreview, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/undo"), &ChangesQuery { turn }).await
    }

    /// The changes of a turn.
    pub async fn changes(&self, session: &str, turn: u32) -> Result<Changes, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/changes"), &DiffQuery { turn, since: None }).await
    }

    /// The changes from before one turn to after another.
    pub async fn changes_since(&self, session: &str, since: u32, turn: u32) -> Result<Changes, ClientError> {
        let query = DiffQuery { turn, since: Some(since) };
        self.get(&format!("/api/v1/sessions/{session}/changes"), &query).await
    }

    /// A piece of the changes of one file in a turn, or in several.
    pub async fn file_changes(
        &self,
        session: &str,
        query: &FileChangesQuery,
    ) -> Result<FilePatch, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/changes/file"), query).await
    }

    /// Everything that was done in a worktree since it was made.
    pub async fn worktree_changes(&self, session: &str, name: &str) -> Result<WorktreeChanges, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/worktrees/{name}/changes"), &()).await
    }

    /// The readiness of a session.
    pub async fn readiness(&self, session: &str) -> Result<Readiness, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/readiness"), &NoQuery {}).await
    }

    /// The agent's slash commands in the scope of a session.
    pub async fn commands(&self, session: &str) -> Result<Choices, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/commands"), &NoQuery {}).await
    }

    /// The agent's models in the scope of a session.
    pub async fn models(&self, session: &str) -> Result<Choices, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/models"), &NoQuery {}).await
    }

    /// The files of a session's directory.
    pub async fn files(&self, session: &str) -> Result<Files, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/files"), &NoQuery {}).await
    }

    /// The directories in one that may be chosen for a session, or those that may be chosen with everything under them.
    pub async fn directories(&self, directory: Option<&str>) -> Result<Directories, ClientError> {
        let query = DirectoriesQuery { directory: directory.map(str::to_owned) };
        self.get("/api/v1/directories", &query).await
    }

    /// Worktrees, of all sessions or of one.
    pub async fn worktrees(&self, query: &WorktreesQuery) -> Result<Worktrees, ClientError> {
        self.get("/api/v1/worktrees", query).await
    }

    async fn chore<T: DeserializeOwned>(
        &self,
        key: &ChangeKey,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<ChoreAnswer<T>, ClientError> {
        let answered: ClientResponse<serde_json::Value> = self.change_under(key, method, path, body).await?;
        let garbled = |error: serde_json::Error| self.garbled(&error.to_string());
        match answered.status {
            StatusCode::ACCEPTED => {
                serde_json::from_value(answered.body).map(ChoreAnswer::GoesOn).map_err(garbled)
            }
            _ => serde_json::from_value(answered.body).map(ChoreAnswer::Over).map_err(garbled),
        }
    }

    /// Removes a worktree; everything in it can be had back.
    pub async fn remove_worktree(
        &self,
        key: &ChangeKey,
        session: &str,
        name: &str,
        query: RemoveWorktreeQuery,
    ) -> Result<ChoreAnswer<RemovedWorktree>, ClientError> {
        let teardown = query.teardown.map(|teardown| format!("?teardown={teardown}")).unwrap_or_default();
        let path = format!("/api/v1/sessions/{session}/worktrees/{name}{teardown}");
        self.chore(key, Method::DELETE, &path, NO_BODY).await
    }

    /// Gives a worktree back that was removed.
    pub async fn restore_worktree(
        &self,
        key: &ChangeKey,
        session: &str,
        name: &str,
        restore: &RestoreWorktree,
    ) -> Result<ChoreAnswer<Worktree>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/worktrees/{name}/restore");
        self.chore(key, Method::POST, &path, Some(restore)).await
    }

    /// Merges the branch of a worktree into the branch that it was made from, or says what would come of it.
    pub async fn merge_worktree(
        &self,
        key: &ChangeKey,
        session: &str,
        name: &str,
        merge: MergeWorktree,
    ) -> Result<ChoreAnswer<MergedWorktree>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/worktrees/{name}/merge");
        self.chore(key, Method::POST, &path, Some(&merge)).await
    }

    /// Brings everything of a worktree back as uncommitted changes, or says what would come of it.
    pub async fn apply_worktree(
        &self,
        key: &ChangeKey,
        session: &str,
        name: &str,
        merge: MergeWorktree,
    ) -> Result<ChoreAnswer<MergedWorktree>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/worktrees/{name}/apply");
        self.chore(key, Method::POST, &path, Some(&merge)).await
    }

    /// Removes worktrees whose time is over, or says which.
    pub async fn collect_worktrees(
        &self,
        collect: CollectWorktrees,
    ) -> Result<CollectedWorktrees, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/worktrees/collect", Some(&collect)).await?.body)
    }

    /// Makes a fork of a session.
    pub async fn fork(&self, session: &str, new: &NewFork) -> Result<Made, ClientError> {
        let path = format!("/api/v1/sessions/{session}/fork");
        Ok(self.change(Method::POST, &path, Some(new)).await?.body)
    }

    /// A page of a session's facts.
    pub async fn facts(&self, session: &str, query: &FactsQuery) -> Result<Facts, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/facts"), query).await
    }

    /// Every fact of a session after a number, those to come included, and live words.
    pub fn follow(&self, session: &str, after: u64) -> FactStream {
        FactStream::new(self.clone(), session, after)
    }

    /// A page of the sessions that have changed, in the order of their last changes.
    pub async fn heads(&self, query: &PageQuery) -> Result<Page<Head>, ClientError> {
        self.get("/api/v1/facts", query).await
    }

    /// The messages that wait in a session, and the one that runs.
    pub async fn queue(&self, session: &str) -> Result<Queue, ClientError> {
        self.get(&format!("/api/v1/sessions/{session}/queue"), &NoQuery {}).await
    }

    /// Puts the waiting messages of a session into another order.
    pub async fn reorder(&self, session: &str, order: &Order) -> Result<ChangeOutcome<Queue>, ClientError> {
        let path = format!("/api/v1/sessions/{session}/queue");
        self.change(Method::PUT, &path, Some(order)).await.map(ChangeOutcome::of)
    }

    /// A page of bindings, in order of their addresses.
    pub async fn bindings(&self, query: &PageQuery) -> Result<Page<Binding>, ClientError> {
        self.get("/api/v1/bindings", query).await
    }

    /// Lets a conversation belong to another open session.
    pub async fn move_binding(&self, to: &Move) -> Result<Move, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/bindings/move", Some(to)).await?.body)
    }

    /// A page of replies on their way out, the oldest first.
    pub async fn outbox(&self, query: &OutboxQuery) -> Result<Page<Outgoing>, ClientError> {
        self.get("/api/v1/outbox", query).await
    }

    /// Sends a reply again that is unknown or parked.
    pub async fn retry_reply(&self, id: u64) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/outbox/{id}/retry"), NO_BODY).await?.body)
    }

    /// Sends a reply no more.
    pub async fn drop_reply(&self, id: u64) -> Result<Done, ClientError> {
        Ok(self.change(Method::DELETE, &format!("/api/v1/outbox/{id}"), NO_BODY).await?.body)
    }

    /// Where would a message go?
    pub async fn explain(&self, query: &RouteQuery) -> Result<Explained, ClientError> {
        self.get("/api/v1/route", query).await
    }

    /// The agents that are configured.
    pub async fn agents(&self) -> Result<Page<Agent>, ClientError> {
        self.get("/api/v1/agents", &NoQuery {}).await
    }

    /// The sign-in you gave for your own turns with an agent.
    pub async fn account(&self, agent: &str) -> Result<Account, ClientError> {
        self.get(&format!("/api/v1/agents/{agent}/account"), &NoQuery {}).await
    }

    /// Gives your own sign-in for your turns with an agent, in place of what you gave before.
    pub async fn set_account(&self, agent: &str, account: &NewAccount) -> Result<Account, ClientError> {
        let path = format!("/api/v1/agents/{agent}/account");
        Ok(self.change(Method::PUT, &path, Some(account)).await?.body)
    }

    /// Takes it away; your turns use the house's again.
    pub async fn remove_account(&self, agent: &str) -> Result<Account, ClientError> {
        let path = format!("/api/v1/agents/{agent}/account");
        Ok(self.change(Method::DELETE, &path, NO_BODY).await?.body)
    }

    /// Every running copy of Homing.
    pub async fn nodes(&self) -> Result<Page<Node>, ClientError> {
        self.get("/api/v1/nodes", &NoQuery {}).await
    }

    /// The program that answers, and what it sees. For the person whose machine it is.
    pub async fn doctor(&self) -> Result<DoctorFindings, ClientError> {
        self.get("/api/v1/doctor", &()).await
    }

    /// The program that answers.
    pub async fn running_program(&self) -> Result<RunningProgram, ClientError> {
        self.get("/api/v1/program", &NoQuery {}).await
    }

    /// The usage, by day, agent and person.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsageOfDays, ClientError> {
        self.get("/api/v1/usage", query).await
    }

    /// A page of questions; the open ones, the oldest first, if nothing is said.
    pub async fn approvals(&self, query: &ApprovalsQuery) -> Result<Page<Approval>, ClientError> {
        self.get("/api/v1/approvals", query).await
    }

    /// One question.
    pub async fn approval(&self, approval: &str) -> Result<Approval, ClientError> {
        self.get(&format!("/api/v1/approvals/{approval}"), &NoQuery {}).await
    }

    /// Answers a question.
    pub async fn answer(
        &self,
        approval: &str,
        answer: impl Into<ApprovalAnswer>,
    ) -> Result<ChangeOutcome<Approval>, ClientError> {
        let path = format!("/api/v1/approvals/{approval}");
        self.change(Method::POST, &path, Some(&answer.into())).await.map(ChangeOutcome::of)
    }

    /// The rules for what agents ask.
    pub async fn rules(&self) -> Result<Page<Rule>, ClientError> {
        self.get("/api/v1/approvals/rules", &NoQuery {}).await
    }

    /// Makes a rule for what agents ask.
    pub async fn add_rule(&self, rule: &NewRule) -> Result<Rule, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/approvals/rules", Some(rule)).await?.body)
    }

    /// Removes it.
    pub async fn remove_rule(&self, rule: &str) -> Result<Done, ClientError> {
        let path = format!("/api/v1/approvals/rules/{rule}");
        Ok(self.change(Method::DELETE, &path, NO_BODY).await?.body)
    }

    /// Whose credential is this?
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.get("/api/v1/me", &NoQuery {}).await
    }
}
