//! Counts panics on this thread: a task that panics must not pass for one that ended.

use crate::notes::BrokenLaw;
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static SEEN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Watches this thread from now on.
pub(crate) fn watch() -> PanicWatch {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let watched = SEEN.with_borrow_mut(|seen| seen.as_mut().map(|seen| seen.push(panic.to_string())));
            if watched.is_none() {
                before(panic);
            }
        }));
    });
    SEEN.set(Some(Vec::new()));
    PanicWatch
}

pub(crate) struct PanicWatch;

impl PanicWatch {
    /// The panics since.
    pub(crate) fn seen(self) -> Vec<BrokenLaw> {
        let seen = SEEN.take().unwrap_or_default();
        seen.into_iter().map(|how| BrokenLaw { law: "nothing panics", how }).collect()
    }
}
