//! The simulation in the normal test run: seeds that hold the laws, and planted bugs that are found.

use homing_sim::{Telling, run};

#[test]
fn the_same_seed_is_the_same_story() {
    for seed in 0..20 {
        let (first, second) = (run(seed, Telling::default()), run(seed, Telling::default()));
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
}
