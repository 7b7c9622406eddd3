//! Follows a session's facts, over lost connections and restarts of the server, without a gap or a repeat.
//!
//! A connection that breaks is made anew at once, and nobody hears of it. Only if the server does not answer then is it told to be
//! away, and when it answers again, to be back; what was missed in between comes next.

use super::sse::{Frame, Reader};
use super::{BACK_OFF, Client, ClientError, is_passing};
use crate::{Fact, Live, Progress};
use reqwest::{Method, Response, header};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Failures in a row that are borne of a server that never answered.
const TRIES_MAX: u32 = 10;
/// The time for which a server that has answered is waited for: a restart, an upgrade, a nap of a laptop.
const AWAY_MAX: Duration = Duration::from_secs(5 * 60);
/// The longest wait between two tries: whoever looks on should see soon that it is back.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// The time in which a server that is still there has answered again.
const STILL_THERE_MAX: Duration = Duration::from_millis(500);
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
    /// The server went away. It is looked for from here on, and what happens meanwhile is heard when it is back.
    Away {
        /// The reason, in a few words.
        reason: String,
    },
    /// The server is back.
    Back,
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
    /// True if the server has ever answered.
    reached: bool,
    away: Option<Absence>,
}

/// The time in which nothing was heard of the server.
#[derive(Debug)]
struct Absence {
    since: Instant,
    tries: u32,
    wait: Duration,
    /// True if it was told.
    told: bool,
}

impl FactStream {
    pub(super) fn new(client: Client, session: &str, after: u64) -> Self {
        let (stream, frames) = (None, VecDeque::new());
        Self { client, session: session.to_owned(), at: after, stream, frames, reached: false, away: None }
    }

    /// The number up to which everything was heard.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next thing that happens. Reconnects by itself; an error is final. May be cancelled and called again.
    pub async fn next(&mut self) -> Result<FollowItem, ClientError> {
        loop {
            while let Some(frame) = self.frames.pop_front() {
                if let Some(heard) = self.hear(&frame)? {
                    return Ok(heard);
                }
            }
            match self.fill().await {
                Ok(Filled::Connected) => {
                    self.reached = true;
                    if self.away.as_mut().is_some_and(|away| std::mem::take(&mut away.told)) {
                        return Ok(FollowItem::Back);
                    }
                }
                // Comments and cut frames, too, prove that somebody is there.
                Ok(Filled::Heard) => self.away = None,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    self.stream = None;
                    if let Some(reason) = self.missed(error)? {
                        return Ok(FollowItem::Away { reason });
                    }
                }
            }
            self.pause().await;
        }
    }

    /// Notes that there was no answer. Says why, the first time that people should know; an error once it is enough.
    fn missed(&mut self, error: ClientError) -> Result<Option<String>, ClientError> {
        let away = self.away.get_or_insert_with(|| Absence {
            since: Instant::now(),
            tries: 0,
            wait: Duration::ZERO,
            told: false,
        });
        away.tries += 1;
        let is_enough = if self.reached { away.since.elapsed() > AWAY_MAX } else { away.tries > TRIES_MAX };
        if is_enough {
            return Err(error);
        }
        // The connection may have been cut alone: a reader that was too slow, a proxy. The first try tells.
        let again = away.tries > 1;
        away.wait = if again { (away.wait * 2).clamp(BACK_OFF, BACK_OFF_MAX) } else { Duration::ZERO };
        Ok(match error {
            ClientError::Unreachable { reason, .. } if self.reached && again && !away.told => {
                away.told = true;
                Some(reason)
            }
            // A server that says "later" is there.
            _ => None,
        })
    }

    /// Waits before the next try, if the last one failed.
    async fn pause(&self) {
        if let (None, Some(away)) = (&self.stream, &self.away) {
            tokio::time::sleep(away.wait).await;
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

    async fn fill(&mut self) -> Result<Filled, ClientError> {
        let Some((response, reader)) = &mut self.stream else {
            self.stream = Some((self.connected().await?, Reader::default()));
            return Ok(Filled::Connected);
        };
        let chunk = match tokio::time::timeout(SILENCE_MAX, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Err(self.client.unreachable("the stream has ended".to_owned())),
            Ok(Err(error)) => return Err(self.client.failed(&error)),
            Err(_) => return Err(self.client.unreachable("the stream fell silent".to_owned())),
        };
        let frames = reader.read(&chunk).map_err(|_| self.client.garbled("not a stream of events"))?;
        self.frames.extend(frames);
        Ok(Filled::Heard)
    }

    /// A new connection. Whoever follows is not left in the dark while the first try after a break takes its time.
    async fn connected(&self) -> Result<Response, ClientError> {
        let breaks = self.away.as_ref().is_some_and(|away| away.tries == 1);
        if !(self.reached && breaks) {
            return self.connect().await;
        }
        let no_answer = |_| Err(self.client.unreachable("it does not answer".to_owned()));
        tokio::time::timeout(STILL_THERE_MAX, self.connect()).await.unwrap_or_else(no_answer)
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

/// The step towards the next frame that was made.
enum Filled {
    Connected,
    Heard,
}

fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(problem) => !is_passing(problem),
        ClientError::Unreachable { .. } => false,
        ClientError::Untrusted { .. } | ClientError::Garbled { .. } => true,
    }
}
