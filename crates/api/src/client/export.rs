//! Reads an export: one JSON document per line, as they come, however many there are.

use super::{Client, ClientError, words};
use crate::{AuditQuery, Entry};
use reqwest::{Method, Response, header};
use std::collections::VecDeque;
use std::time::Duration;

/// The longest silence before the server is taken to be gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The longest line that we take; the server's are far shorter.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The entries of an audit, one after the other, newest first.
#[derive(Debug)]
pub struct AuditExport {
    client: Client,
    response: Response,
    rest: Vec<u8>,
    // At most what one chunk of the connection held.
    lines: VecDeque<String>,
    ended: bool,
}

impl Client {
    /// Every entry of the audit that fits, newest first.
    pub async fn export_audit(&self, query: &AuditQuery) -> Result<AuditExport, ClientError> {
        let request = self.request(Method::GET, "/api/v1/audit").query(query);
        let request = request.header(header::ACCEPT, "application/jsonl");
        let response = request.send().await.map_err(|error| self.unreachable(words(&error)))?;
        let status = response.status();
        if !status.is_success() {
            let body = response.bytes().await.unwrap_or_default();
            return Err(self.refused(status, &body));
        }
        let (rest, lines) = (Vec::new(), VecDeque::new());
        Ok(AuditExport { client: self.clone(), response, rest, lines, ended: false })
    }
}

impl AuditExport {
    /// The next entry; none at the end. An export that was cut short is an error, not an end.
    pub async fn next(&mut self) -> Result<Option<Entry>, ClientError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                let garbled = |error: serde_json::Error| self.client.garbled(&error.to_string());
                return serde_json::from_str(&line).map(Some).map_err(garbled);
            }
            if self.ended {
                return Ok(None);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), ClientError> {
        let chunk = match tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) if self.rest.is_empty() => {
                self.ended = true;
                return Ok(());
            }
            Ok(Ok(None)) => return Err(self.client.garbled("the export ends in the middle of an entry")),
            Ok(Err(error)) => return Err(self.client.unreachable(words(&error))),
            Err(_) => return Err(self.client.unreachable("the export fell silent".to_owned())),
        };
        self.rest.extend_from_slice(&chunk);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8(line).map_err(|_| self.client.garbled("not UTF-8"))?;
            self.lines.push_back(line);
        }
        if self.rest.len() > LINE_BYTES_MAX {
            return Err(self.client.garbled("a line without end"));
        }
        Ok(())
    }
}
