//! The one place between the engine and a store: `Wrapped` has every port, and hands each call to a `Wrap`.
//!
//! The traits of `ports.rs` are written down once, in `ports!`; it makes the traits and the forwarding. A `Wrap` says in
//! `pass` what becomes of any call, and puts another method in the place of those that it cares about.

use std::sync::Arc;

/// The kind of a call, for whoever wraps a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Changes nothing.
    Read,
    /// A change by a keeper, a reader or somebody's office.
    Write,
    /// A change by a door or the timer, after which somebody must look into an inbox.
    Door,
}

/// A call on its way to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its kind.
    pub sort: Sort,
    /// The name of the method.
    pub name: &'static str,
}

/// A store behind a `Wrap`.
#[derive(Debug)]
pub struct Wrapped<W>(pub Arc<W>);

/// Writes ports down: the traits, `Store` as all of them, `Wrap` with a method for each of theirs, and `Wrapped`.
macro_rules! ports {
    ($(
        $(#[$port_doc:meta])*
        pub trait $port:ident {
            $($(#[$doc:meta])* $sort:ident fn $name:ident($($arg:ident: $of:ty),* $(,)?) -> $out:ty;)*
        }
    )*) => {
        $(
            $(#[$port_doc])*
            pub trait $port: Send + Sync + 'static {
                $($(#[$doc])* fn $name(&self, $($arg: $of),*) -> Reply<'_, $out>;)*
            }
        )*

        /// All that the engine needs from a database.
        pub trait Store: $($port +)* {
            /// The node that holds this store, and the term under which it does: `TERMS_PER_START` more with each start, so
            /// that every keeper of one start can have a term of its own below the next start's.
            fn node(&self) -> NodeRow;

            /// Figures about the store's own work, for metrics.
            fn gauges(&self) -> Gauges;
        }

        /// Something between the engine and a store. Each method passes its call on, unless another one is put in its place.
        pub trait Wrap: Send + Sync + 'static {
            /// The store behind it.
            type Inner: Store;

            /// The store behind it.
            fn inner(&self) -> &Self::Inner;

            /// Every call passes here; `go` makes it.
            fn pass<'a, T: Send + 'a>(
                &'a self,
                _call: Call,
                go: impl FnOnce() -> Reply<'a, T> + Send + 'a,
            ) -> Reply<'a, T> {
                go()
            }

            $($(
                #[doc = concat!("`", stringify!($port), "::", stringify!($name), "`, as it reaches the store.")]
                fn $name(&self, $($arg: $of),*) -> Reply<'_, $out> {
                    self.inner().$name($($arg),*)
                }
            )*)*
        }

        $(
            impl<W: Wrap> $port for Wrapped<W> {
                $(
                    fn $name(&self, $($arg: $of),*) -> Reply<'_, $out> {
                        let call = Call { sort: Sort::$sort, name: stringify!($name) };
                        self.0.pass(call, move || self.0.$name($($arg),*))
                    }
                )*
            }
        )*

        impl<W: Wrap> Store for Wrapped<W> {
            fn node(&self) -> NodeRow {
                self.0.inner().node()
            }
            fn gauges(&self) -> Gauges {
                self.0.inner().gauges()
            }
        }
    };
}
pub(crate) use ports;
