//! Objects and numbers as schemas mean them. Our decoder would also take an array for an object, field by field, and no
//! `3.0` for a whole number; the schema says otherwise.

use crate::bounds::WHOLE_MAX;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// Reads a `T` that is written as an object.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// The same, or nothing.
pub(crate) fn object_maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let read = Option::<WholeObject<T>>::deserialize(deserializer)?;
    Ok(read.map(|WholeObject(value)| value))
}

struct WholeObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WholeObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

/// Reads a whole number as schemas mean it.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Whole::deserialize(deserializer).map(|Whole(number)| number)
}

/// The same, of few.
pub(crate) fn whole_small<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let number = whole(deserializer)?;
    let reason = || format!("invalid value: {number}, expected a whole number from 0 to {}", u16::MAX);
    u16::try_from(number).map_err(|_| serde::de::Error::custom(reason()))
}

/// The same, or nothing.
pub(crate) fn whole_maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let read = Option::<Whole>::deserialize(deserializer)?;
    Ok(read.map(|Whole(number)| number))
}

/// A whole number, which may be written with a fraction of nothing (`3.0`): to a schema that is an integer, too.
pub(crate) struct Whole(pub(crate) u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.fract() == 0.0 && (0.0..=f64::from(WHOLE_MAX)).contains(&number) {
            return Ok(Self(number as u32));
        }
        let reason = format!("invalid value: {number}, expected a whole number from 0 to {WHOLE_MAX}");
        Err(serde::de::Error::custom(reason))
    }
}
