//! Steps that go on to their end even if whoever asked hangs up.

use crate::{Engine, Refused};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

type Step<T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send>>;

/// A step that is run where it is awaited, as long as somebody does, and then in a task of the engine.
struct Surely<T: Send + 'static> {
    engine: Engine,
    /// None once it is over.
    step: Option<Step<T>>,
}

impl Engine {
    /// Whatever puts something into an inbox goes on to its end even if the caller hangs up: what is stored must not
    /// wait for somebody else to come by.
    pub(crate) fn surely<T: Send + 'static>(
        &self,
        step: impl Future<Output = Result<T, Refused>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Refused>> + Send {
        Surely { engine: self.clone(), step: Some(Box::pin(step)) }
    }
}

impl<T: Send + 'static> Future for Surely<T> {
    type Output = Result<T, Refused>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let step = self.step.as_mut().expect("a step that is over is not polled again");
        let answer = step.as_mut().poll(context);
        if answer.is_ready() {
            self.step = None;
        }
        answer
    }
}

impl<T: Send + 'static> Drop for Surely<T> {
    fn drop(&mut self) {
        let Some(step) = self.step.take() else { return };
        // Where no task can be begun any more, the node goes down: the next start looks into every inbox.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.engine.spawn(async move { drop(step.await) });
        }
    }
}
