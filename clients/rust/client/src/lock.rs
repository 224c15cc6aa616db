use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A mutex whose wait is a future.
#[derive(Default)]
pub(crate) struct Lock(Mutex<(bool, VecDeque<Waker>)>);

pub(crate) struct Guard<'a>(&'a Lock);

impl Lock {
    pub async fn lock(&self) -> Guard<'_> {
        poll_fn(|context| {
            let mut inner = self.0.lock().unwrap();
            if inner.0 {
                inner.1.push_back(context.waker().clone());
                return Poll::Pending;
            }
            inner.0 = true;
            Poll::Ready(())
        })
        .await;
        Guard(self)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut inner = self.0.0.lock().unwrap();
            inner.0 = false;
            std::mem::take(&mut inner.1)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[derive(Default)]
struct Rung {
    rung: bool,
    alarm: u64,
    waker: Option<Waker>,
}

/// Wakes one task that waits for work or for a time.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<Mutex<Rung>>);

impl Bell {
    pub fn ring(&self) {
        let waker = {
            let mut inner = self.0.lock().unwrap();
            inner.rung = true;
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A function that rings, unless a newer alarm was set.
    pub fn alarm(&self) -> Box<dyn FnOnce(()) + Send> {
        let bell = self.clone();
        let mine = {
            let mut inner = self.0.lock().unwrap();
            inner.alarm += 1;
            inner.alarm
        };
        Box::new(move |()| {
            if bell.0.lock().unwrap().alarm == mine {
                bell.ring();
            }
        })
    }

    pub async fn heard(&self) {
        poll_fn(|context| {
            let mut inner = self.0.lock().unwrap();
            if std::mem::take(&mut inner.rung) {
                return Poll::Ready(());
            }
            inner.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
