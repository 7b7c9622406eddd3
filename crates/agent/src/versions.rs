//! The versions of an agent's program with which its driver was tried, and what another version is beside them. Pure.

use std::cmp::Ordering;

/// The oldest and the newest version with which a driver was tried, and how to get another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedVersions {
    pub oldest: String,
    pub newest: String,
    /// The command that brings the program up to date, for people.
    pub update: String,
}

/// The place of a version beside those that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionAge {
    /// Nobody has tried one as old: what fails may fail because of that.
    Older,
    /// It is one of them, or between them.
    Tried,
    /// Nobody has tried one as new. That is no defect.
    Newer,
    /// It says no version, or one that cannot be compared.
    Unknown,
}

impl TriedVersions {
    pub fn new(oldest: &str, newest: &str, update: &str) -> Self {
        Self { oldest: oldest.to_owned(), newest: newest.to_owned(), update: update.to_owned() }
    }

    /// The place of this version beside those that were tried.
    pub fn age(&self, version: &str) -> VersionAge {
        match (compare(version, &self.oldest), compare(version, &self.newest)) {
            (Some(Ordering::Less), _) => VersionAge::Older,
            (_, Some(Ordering::Greater)) => VersionAge::Newer,
            (Some(_), Some(_)) => VersionAge::Tried,
            _ => VersionAge::Unknown,
        }
    }

    /// The words about a version that is too old, with the remedy; none about any other.
    pub fn too_old(&self, version: &str) -> Option<String> {
        let Self { oldest, update, .. } = self;
        (self.age(version) == VersionAge::Older).then(|| {
            format!(
                "its version is {version}, and {oldest} is the oldest that was tried; update it: {update}"
            )
        })
    }
}

/// Compares by the numbers between the dots. What comes before a release (`1.2.0-rc.1`) is older than it. None if one of them has
/// no such form.
fn compare(one: &str, other: &str) -> Option<Ordering> {
    let ((one, one_released), (other, other_released)) = (numbers(one)?, numbers(other)?);
    let length = one.len().max(other.len());
    let filled = |mut numbers: Vec<u64>| {
        numbers.resize(length, 0);
        numbers
    };
    Some(filled(one).cmp(&filled(other)).then(one_released.cmp(&other_released)))
}

/// The numbers of a version, and whether it is a release.
fn numbers(version: &str) -> Option<(Vec<u64>, bool)> {
    // What was built, and from what, says nothing of its age.
    let version = version.trim().trim_start_matches('v').split('+').next().unwrap_or_default();
    let (release, before) = version.split_once('-').unwrap_or((version, ""));
    let numbers: Result<Vec<u64>, _> = release.split('.').map(str::parse).collect();
    Some((numbers.ok()?, before.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(version: &str, age: VersionAge) {
        let tried = TriedVersions::new("2.1.9", "2.1.325", "npm install -g it");
        assert_eq!(tried.age(version), age, "{version}");
        assert_eq!(tried.too_old(version).is_some(), age == VersionAge::Older, "{version}");
    }

    #[test]
    fn versions_are_compared_by_number_and_not_by_letter() {
        check("2.1.8", VersionAge::Older);
        check("2.1", VersionAge::Older);
        check("1.99.99", VersionAge::Older);
        check("2.1.9-rc.1", VersionAge::Older);
        check("2.1.9", VersionAge::Tried);
        check("2.1.10", VersionAge::Tried);
        check("v2.1.325", VersionAge::Tried);
        check("2.1.325+build.7", VersionAge::Tried);
        check("2.1.325.1", VersionAge::Newer);
        check("2.2.0-nightly", VersionAge::Newer);
        check("10.0", VersionAge::Newer);
    }

    #[test]
    fn what_cannot_be_compared_is_neither_old_nor_new() {
        for version in ["", "unknown", "2.x", "99999999999999999999999.0", "-1.0"] {
            check(version, VersionAge::Unknown);
        }
    }

    #[test]
    fn words_about_an_old_one_say_what_to_do() {
        let words = TriedVersions::new("1.0", "2.0", "npm install -g it").too_old("0.9").unwrap();
        assert!(
            words.contains("0.9") && words.contains("1.0") && words.contains("npm install -g it"),
            "{words}"
        );
    }
}
