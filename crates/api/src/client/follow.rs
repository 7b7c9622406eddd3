//! Follows a session's facts, over lost connections and restarts of the server, without a gap or a repeat.

use super::sse::{Frame, Reader};
use super::{BACK_OFF, Client, ClientError, is_passing};
use crate::{Fact, Live, Progress};
use reqwest::{Method, Response, header};
use std::collections::VecDeque;
use std::time::Duration;

/// Failures of a stream in a row, before anything was heard, that are borne.
const TRIES_MAX: u32 = 10;
/// The longest wait between two tries.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The server sends something at least every 15 seconds; after three such times it is taken to be gone.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Something that a follower hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowItem {
    /// A fact of the log.
    Fact(Fact),
    /// Words ahead of the log; they come again as a fact with the same turn, part and offset.
    Live(Live),
    /// The work that goes on between turns, and how far it is; none once it is over.
    Progress(Option<Progress>),
}

/// A session's facts, one after the other, without end.
#[derive(Debug)]
pub struct FactStream {
    client: Client,
    session: String,
    at: u64,
    stream: Option<(Response, Reader)>,
    // At most what one chunk of the connection held.
    frames: VecDeque<Frame>,
}

impl FactStream {
    pub(super) fn new(client: Client, session: &str, after: u64) -> Self {
        Self { client, session: session.to_owned(), at: after, stream: None, frames: VecDeque::new() }
    }

    /// The number up to which everything was heard.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next thing that happens. Reconnects by itself; an error is final.
    pub async fn next(&mut self) -> Result<FollowItem, ClientError> {
        let (mut tries, mut wait) = (0, BACK_OFF);
        loop {
            while let Some(frame) = self.frames.pop_front() {
                if let Some(heard) = self.hear(&frame)? {
                    return Ok(heard);
                }
            }
            match self.fill().await {
                // Comments and cut frames, too, prove that somebody is there.
                Ok(()) => (tries, wait) = (0, BACK_OFF),
                Err(error) if is_final(&error) || tries == TRIES_MAX => return Err(error),
                Err(_) => {
                    self.stream = None;
                    tries += 1;
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(BACK_OFF_MAX);
                }
            }
        }
    }

    fn hear(&mut self, frame: &Frame) -> Result<Option<FollowItem>, ClientError> {
        let garbled = |error: serde_json::Error| self.client.garbled(&error.to_string());
        if frame.name.as_deref() == Some("live") {
            return serde_json::from_str(&frame.lines)
                .map(|live| Some(FollowItem::Live(live)))
                .map_err(garbled);
        }
        if frame.name.as_deref() == Some("progress") {
            return serde_json::from_str(&frame.lines)
                .map(|progress| Some(FollowItem::Progress(progress)))
                .map_err(garbled);
        }
        // Other names are for those who asked for them, or newer than us.
        if frame.name.is_some() {
            return Ok(None);
        }
        let fact: Fact = serde_json::from_str(&frame.lines).map_err(garbled)?;
        if fact.number <= self.at {
            return Ok(None);
        }
        self.at = fact.number;
        Ok(Some(FollowItem::Fact(fact)))
    }

    async fn fill(&mut self) -> Result<(), ClientError> {
        if self.stream.is_none() {
            self.stream = Some((self.connect().await?, Reader::default()));
        }
        let Some((response, reader)) = &mut self.stream else { return Ok(()) };
        let chunk = match tokio::time::timeout(SILENCE_MAX, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Err(self.client.unreachable("the stream has ended".to_owned())),
            Ok(Err(error)) => return Err(self.client.failed(&error)),
            Err(_) => return Err(self.client.unreachable("the stream fell silent".to_owned())),
        };
        let frames = reader.read(&chunk).map_err(|_| self.client.garbled("not a stream of events"))?;
        self.frames.extend(frames);
        Ok(())
    }

    async fn connect(&self) -> Result<Response, ClientError> {
        let path = format!("/api/v1/sessions/{}/facts", self.session);
        let request = self
            .client
            .request(Method::GET, &path)
            .header(header::ACCEPT, "text/event-stream")
            .header("Last-Event-ID", self.at.to_string());
        let response = request.send().await.map_err(|error| self.client.failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(self.client.refused(status, &body))
    }
}

fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(problem) => !is_passing(problem),
        ClientError::Unreachable { .. } => false,
        ClientError::Untrusted { .. } | ClientError::Garbled { .. } => true,
    }
}
