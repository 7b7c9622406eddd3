//! Steps that go on to their end even if whoever asked hangs up.

use crate::engine_ports::EnginePorts;
use crate::tasks::Tasks;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

type BoxedStep<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A step that is run where it is awaited, as long as somebody does, and then in a task of the engine.
struct Uncancelled<T: Send + 'static> {
    tasks: Tasks,
    /// None once it is over.
    step: Option<BoxedStep<T>>,
}

impl EnginePorts {
    /// Whatever puts something into an inbox goes on to its end even if the caller hangs up: what is stored must not
    /// wait for somebody else to come by.
    pub(crate) fn uncancelled<T: Send + 'static>(
        &self,
        step: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        Uncancelled { tasks: self.tasks.clone(), step: Some(Box::pin(step)) }
    }
}

impl<T: Send + 'static> Future for Uncancelled<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let step = self.step.as_mut().expect("a step that is over is not polled again");
        let answer = step.as_mut().poll(context);
        if answer.is_ready() {
            self.step = None;
        }
        answer
    }
}

impl<T: Send + 'static> Drop for Uncancelled<T> {
    fn drop(&mut self) {
        let Some(step) = self.step.take() else { return };
        // Where no task can be begun any more, the node goes down: the next start looks into every inbox.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn(async move { drop(step.await) });
        }
    }
}
