//! All chance in a simulated world comes from here, so that a seed is a whole story.
//!
//! xoshiro256++ started by SplitMix64: small, quick, and the same on every machine.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Dice {
    state: [u64; 4],
}

impl Dice {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Self { state: std::array::from_fn(|_| mix(&mut mixer)) }
    }

    /// Another stream, which only this place in this stream leads to.
    pub fn fork(&mut self) -> Self {
        Self::new(self.roll())
    }

    /// 64 random bits.
    pub fn roll(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let rolled = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        rolled
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        // The slight bias of the remainder does not matter here; the simplicity does.
        if end == 0 { 0 } else { self.roll() % end }
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// One of these, each as often as its weight says.
    pub fn weigh<T: Copy>(&mut self, of: &[(u64, T)]) -> T {
        let mut left = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, thing) in of {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *thing,
            }
        }
        of[0].1
    }
}

fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_stream_and_another_is_another() {
        let rolls = |seed| -> Vec<u64> {
            let mut dice = Dice::new(seed);
            (0..8).map(|_| dice.roll()).collect()
        };
        assert_eq!(rolls(7), rolls(7));
        assert_ne!(rolls(7), rolls(8));
    }

    #[test]
    fn what_is_weighed_nothing_never_comes() {
        let mut dice = Dice::new(1);
        assert!((0..1_000).all(|_| dice.weigh(&[(0, 'a'), (3, 'b'), (1, 'c')]) != 'a'));
        assert!((0..1_000).all(|_| dice.between(3, 5) >= 3 && dice.below(2) < 2 && !dice.chance(0)));
    }
}
