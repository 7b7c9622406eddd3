//! Codex, by its app server.
