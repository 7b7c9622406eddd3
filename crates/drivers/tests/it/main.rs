//! The far side with real processes: every driver's stories, and that nothing is ever left behind.

mod bench;
mod orphans;
mod real;
mod scripted;
