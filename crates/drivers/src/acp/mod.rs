//! Any agent that speaks the Agent Client Protocol, by its command line and a table of its quirks.
