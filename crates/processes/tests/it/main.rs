//! Supervised trees and the wall with real processes.

mod bench;
mod plans;
mod wall;
