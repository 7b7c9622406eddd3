//! Where and how a session acts changes between turns, and nothing of it is mixed up.
