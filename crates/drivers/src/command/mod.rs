//! Any program: the message in, the answer out.
