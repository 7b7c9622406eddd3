//! Keys that make a repeated wish the same wish: the caller's key, and a hash of the stored form of what is asked for.
//!
//! The hash outlives this version, so it is made of what is written down for good (`store::record`, texts of ids, stable
//! words), never of how a type prints itself.

use crate::engine_ports::EnginePorts;
use crate::{CallerKey, Inbound, Trace};
use kernel::{Address, Remember, Request, To};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use store::record::{delivery_word, encode_request};
use store::{Expected, Key, NewAttachment, Resolved};

/// The time for which an idempotency key is remembered.
const KEY_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;

impl EnginePorts {
    /// The key of a wish that is the same if this is; `body` is plain data.
    pub(crate) fn key(&self, verb: &'static str, trace: &Trace, body: &impl Serialize) -> Option<Key> {
        self.key_with(verb, trace, || hash_of(body, &[]))
    }

    pub(super) fn key_with(
        &self,
        verb: &'static str,
        trace: &Trace,
        hash: impl FnOnce() -> [u8; 32],
    ) -> Option<Key> {
        let (key, expires) = match trace.key.as_ref()? {
            CallerKey::Idempotency(key) => (key.clone(), Some(self.now().after_ms(KEY_MS_MAX))),
            CallerKey::Delivery(id) => (id.clone(), None),
        };
        Some(Key { verb, key, hash: hash(), expires })
    }
}

/// Of a message: where to, how, its words as they are stored, and what is said about what goes along, which has its hash.
pub(super) fn hash_of_message(inbound: &Inbound, words: &[u8], attachments: &[NewAttachment]) -> [u8; 32] {
    let words = &with_attachments(words, Some(attachments).filter(|attached| !attached.is_empty()));
    let to = match &inbound.to {
        To::Session(session) => ("session", session.to_string()),
        To::Conversation(address) => ("conversation", address.to_string()),
        To::New => ("new", String::new()),
        To::NewIn(address) => ("new", address.to_string()),
    };
    let how = (delivery_word(inbound.delivery), inbound.under.map(|epoch| epoch.0), inbound.unattended);
    let reply = inbound.reply.as_ref().map(Address::to_string);
    match &inbound.expected {
        // As it was before anybody could expect anything.
        None => hash_of(&(to, how, &inbound.if_new, reply), words),
        Some(Expected { agent, model }) => {
            hash_of(&(to, how, &inbound.if_new, reply, ("expected", agent, model)), words)
        }
    }
}

/// Of a request: what it names, and its stored form, without whatever is looked up for it; and the words of an edit.
pub(super) fn hash_of_request(
    request: &Request,
    words: &[u8],
    attachments: Option<&[NewAttachment]>,
) -> [u8; 32] {
    let words = &with_attachments(words, attachments);
    let more = match request {
        Request::Answer { remember: Some(Remember::Session), .. } => Some("session"),
        Request::Answer { remember: Some(Remember::Always), .. } => Some("always"),
        Request::Release { there: true, .. } => Some("there"),
        Request::Undo { under: Some(_), .. } | Request::Redo { under: Some(_), .. } => Some("under"),
        _ => None,
    };
    let stored = encode_request(request, &Resolved::default());
    hash_of(&(request.subject().to_string(), String::from_utf8_lossy(&stored), more), words)
}

/// Words, and after them what is said about what goes along; words alone as they were before anything could.
fn with_attachments<'a>(words: &'a [u8], attachments: Option<&[NewAttachment]>) -> Cow<'a, [u8]> {
    let Some(attachments) = attachments else { return Cow::Borrowed(words) };
    let mut all = words.to_vec();
    all.extend_from_slice(b"\nattached");
    for attached in attachments {
        all.push(b'\n');
        all.extend_from_slice(&attached.about);
    }
    Cow::Owned(all)
}

/// Of plain data, and of bytes that were encoded before.
fn hash_of(body: &impl Serialize, words: &[u8]) -> [u8; 32] {
    let head = serde_json::to_vec(body).expect("wishes are plain data");
    Sha256::new().chain_update(&head).chain_update(b"\n").chain_update(words).finalize().into()
}
