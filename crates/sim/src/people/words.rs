//! The words of people: mostly something plain, often something that takes a while, now and then something awkward.

use crate::dice::Dice;

/// The words of a message, without its code word.
pub(super) fn something(dice: &mut Dice) -> String {
    let mut words = "hello".to_owned();
    for _ in 0..dice.weigh(&[(4, 0), (5, 1), (2, 2)]) {
        words.push('\n');
        words.push_str(&directive(dice));
    }
    words
}

fn directive(dice: &mut Dice) -> String {
    match dice.below(40) {
        0..10 => format!("!sleep {}", dice.between(1, 2_500)),
        10..17 => "!recall".to_owned(),
        17..20 => format!("!say {} {}", dice.between(1, 30), dice.between(5, 50)),
        20 => "!say 400 0".to_owned(),
        21 => "!fail before".to_owned(),
        22 => "!fail after".to_owned(),
        23 | 24 => format!("!fail start {}", dice.between(1, 5)),
        25 => format!("!busy start {}", dice.between(1, 3)),
        26 => "!busy".to_owned(),
        27 => "!gone".to_owned(),
        28 => "!refuse".to_owned(),
        29 | 30 => "!crash".to_owned(),
        31 => "!hang".to_owned(),
        32..36 => "!ask shell".to_owned(),
        _ => "!newid".to_owned(),
    }
}
