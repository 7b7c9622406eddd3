//! OpenCode, by its HTTP server, one for each session.
