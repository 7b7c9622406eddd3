//! Following a session's facts as a browser would: one server-sent event after the other.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::net::TcpStream;

use serde_json::Value;

use crate::http::{self, Http};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// The fact's number; none for words ahead of the log.
    pub id: Option<u64>,
    /// The event's name, if it has one.
    pub event: Option<String>,
    pub json: Value,
}

/// A stream that is being followed.
#[derive(Debug)]
pub struct EventStream {
    reader: BufReader<TcpStream>,
    chunked: bool,
    pending: Vec<u8>,
    heard: VecDeque<StreamEvent>,
}

impl Http {
    /// Follows a path that answers with a stream. `last` is the number from which to resume.
    pub fn follow(&self, path: &str, last: Option<u64>) -> io::Result<EventStream> {
        let last = last.map(|last| last.to_string());
        let mut headers = vec![("Accept", "text/event-stream")];
        headers.extend(last.iter().map(|last| ("Last-Event-ID", last.as_str())));
        let mut reader = self.open("GET", path, &headers, None)?;
        let (status, headers) = http::read_head(&mut reader)?;
        if status != 200 {
            return Err(io::Error::other(format!("{path}: status {status}")));
        }
        let chunked = http::is_chunked(&headers);
        Ok(EventStream { reader, chunked, pending: Vec::new(), heard: VecDeque::new() })
    }
}

impl EventStream {
    /// The next event; none at the end of the stream. Comments (the server's signs of life) are passed over.
    pub fn next_event(&mut self) -> io::Result<Option<StreamEvent>> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(Some(heard));
            }
            match self.read()? {
                Some(bytes) => self.take(&bytes),
                None => return Ok(None),
            }
        }
    }

    /// Reads on until an event is the one that is looked for, and answers everything up to it.
    #[track_caller]
    pub fn until(&mut self, mut found: impl FnMut(&StreamEvent) -> bool) -> Vec<StreamEvent> {
        let mut all = Vec::new();
        loop {
            match self.next_event() {
                Ok(Some(heard)) => {
                    all.push(heard);
                    if found(&all[all.len() - 1]) {
                        return all;
                    }
                }
                other => panic!("the stream ended ({other:?}) after {all:#?}"),
            }
        }
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.chunked {
            return http::read_chunk(&mut self.reader);
        }
        let mut bytes = vec![0; 4_096];
        let read = io::Read::read(&mut self.reader, &mut bytes)?;
        bytes.truncate(read);
        Ok((read > 0).then_some(bytes))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            self.heard.extend(read_block(&String::from_utf8_lossy(&block)));
        }
    }
}

fn read_block(block: &str) -> Option<StreamEvent> {
    let (mut id, mut event, mut text) = (None, None, String::new());
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = value.parse().ok(),
            "event" => event = Some(value.to_owned()),
            "data" => text += value,
            _ => {}
        }
    }
    let json = serde_json::from_str(&text).ok()?;
    Some(StreamEvent { id, event, json })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_an_event_and_a_comment_is_not() {
        let fact = read_block("id: 7\nevent: fact\ndata: {\"type\":\"queued\"}\n\n").unwrap();
        assert_eq!(
            (fact.id, fact.event.as_deref(), &fact.json["type"]),
            (Some(7), Some("fact"), &"queued".into())
        );
        assert_eq!(read_block(": still here\n\n"), None);
    }
}
