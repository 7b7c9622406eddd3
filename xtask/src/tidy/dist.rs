//! The browser app that is committed is of the sources that are: compared by a hash, without Node.

use super::Violation;
use crate::repository::Repository;
use crate::ui::{STAMP, sources_hash};

pub(super) fn the_browser_app_is_of_its_sources(house: &Repository) -> Vec<Violation> {
    let has_sources = house.texts().any(|(path, _)| path == "ui/package.json");
    if !has_sources || house.text(STAMP).trim() == sources_hash(house) {
        return Vec::new();
    }
    let what = "ui/dist was built of other sources than these";
    vec![Violation::new(STAMP, 1, what, "run `cargo xtask ui`, and commit what it builds")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    #[test]
    fn a_source_that_was_changed_after_the_build_is_found() {
        let house = || Repository::in_order().file("ui/package.json", "{}").file("ui/src/app.ts", "app");
        let built = house().file(STAMP, &format!("{}\n", sources_hash(&house())));
        assert_eq!(say(the_browser_app_is_of_its_sources, &built), "");
        let changed = built.file("ui/src/app.ts", "another");
        let found = "ui/dist/sources.sha256:1: ui/dist was built of other sources than these\n";
        assert_eq!(say(the_browser_app_is_of_its_sources, &changed), found);
        assert_eq!(say(the_browser_app_is_of_its_sources, &house()), found, "never built");
        assert_eq!(say(the_browser_app_is_of_its_sources, &Repository::in_order()), "");
    }
}
