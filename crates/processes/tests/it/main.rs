//! Supervised trees and the wall with real processes.

mod bench;
mod listed;
mod namespaces;
mod plans;
mod spare;
mod wall;
