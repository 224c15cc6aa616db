use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// A request. Transports follow no redirects: one counts as no usable answer.
#[derive(Clone)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: &'static str,
    /// The whole address.
    pub url: String,
    /// The access token, for the header `Authorization`.
    pub token: Option<String>,
    /// JSON.
    pub body: Option<Vec<u8>>,
    /// The longest time until the end of the answer. For a stream, the longest silence.
    pub timeout: Duration,
}

/// An answer, with its whole body.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// With names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// Why there was no answer.
#[derive(Clone, Debug)]
pub struct Lost(pub String);

/// A function that is called once.
pub type Done<T> = Box<dyn FnOnce(T) + Send>;

/// A part of a stream of events.
pub enum Chunk {
    /// The head of the answer. For an error its body too, and nothing follows.
    Begun(Answer),
    /// A part of the body.
    Bytes(Vec<u8>),
    /// Nothing follows.
    End,
}

/// Requests, pauses, time and randomness: all that differs between a thread, Tokio and a browser.
pub trait Transport: Send + Sync {
    /// Send a request, and call `done` with the whole answer, now or later, on any thread.
    fn send(&self, request: Request, done: Done<Result<Answer, Lost>>);
    /// Call `done` after a pause.
    fn after(&self, pause: Duration, done: Done<()>);
    /// Send a request, return at once, and call `each` with the parts of its answer until it returns false. Silence
    /// longer than the timeout of the request is an end.
    fn stream(&self, request: Request, each: Box<dyn FnMut(Chunk) -> bool + Send>);
    /// Milliseconds since 1970.
    fn now(&self) -> i64;
    /// The minutes by which local time is ahead of UTC.
    fn offset(&self) -> i32 {
        0
    }
    /// The time since some moment, by a clock that only runs forward.
    fn elapsed(&self) -> Duration;
    /// Fill bytes with random numbers for keys.
    fn random(&self, bytes: &mut [u8]);
}

/// Return a future of the value that a function calls back with.
pub(crate) async fn called<T: Send + 'static>(start: impl FnOnce(Done<T>)) -> T {
    let (sender, receiver) = oneshot::channel();
    start(Box::new(move |value| _ = sender.send(value)));
    receiver.await.expect("transports and stores call back")
}

/// Return when the first of two futures ends.
pub(crate) async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await;
}

struct Unpark(Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Run a future to its end on this thread: for programs without an executor.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_returned_from_any_thread() {
        assert_eq!(block_on(called(|done| done(7))), 7);
        assert_eq!(block_on(called(|done| _ = std::thread::spawn(|| done(7)))), 7);
    }

    #[test]
    #[should_panic(expected = "call back")]
    fn callback_that_is_never_called_hangs_nothing() {
        block_on(called(|done: Done<()>| drop(done)));
    }
}
