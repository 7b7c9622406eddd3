//! Claude Code, by lines of JSON in a process that is kept between turns.
