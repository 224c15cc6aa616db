use crate::client::Client;
use crate::transport::first;
use std::future::Future;
use tokio::sync::oneshot;

/// Works in the background until it is dropped: on a thread, or as a task of the browser.
pub struct Background {
    end: Option<oneshot::Sender<()>>,
    #[cfg(not(target_arch = "wasm32"))]
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Background {
    /// Sync after each game, and follow the events of the player and of these boards.
    pub fn start(client: &Client, boards: &'static [&'static str]) -> Background {
        let client = client.clone();
        Background::spawn(async move { client.run(boards).await })
    }

    /// The same, and sign in to this device's guest whenever there is no session, also later if the device is offline.
    pub fn with_guest(client: &Client, boards: &'static [&'static str]) -> Background {
        let client = client.clone();
        Background::spawn(async move { client.run_with_guest(boards).await })
    }

    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Background {
        let (end, dropped) = oneshot::channel();
        let work = first(async { _ = dropped.await }, work);
        #[cfg(not(target_arch = "wasm32"))]
        let thread = Some(std::thread::spawn(move || crate::block_on(work)));
        #[cfg(all(feature = "web", target_arch = "wasm32"))]
        wasm_bindgen_futures::spawn_local(work);
        #[cfg(all(not(feature = "web"), target_arch = "wasm32"))]
        drop(work); // there is no transport
        Background {
            end: Some(end),
            #[cfg(not(target_arch = "wasm32"))]
            thread,
        }
    }
}

impl Drop for Background {
    /// Wait for the end, so that the store can be opened again as soon as the client is dropped, too.
    fn drop(&mut self) {
        self.end = None;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
