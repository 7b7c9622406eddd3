//! Supervised trees and the wall with real processes.

mod bench;
mod namespaces;
mod plans;
mod wall;
