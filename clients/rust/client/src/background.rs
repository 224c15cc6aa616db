use crate::client::Client;
use std::future::Future;

/// Works in the background until it is dropped: on a thread, or as a task of the browser.
pub struct Background(Client);

impl Background {
    /// Sync after each game, and follow the events of the player and of these boards.
    pub fn start(client: &Client, boards: &'static [&'static str]) -> Background {
        let theirs = client.clone();
        spawn(async move { theirs.run(boards).await });
        Background(client.clone())
    }

    /// The same, and sign in to this device's guest whenever there is no session, also later if the device is offline.
    pub fn with_guest(client: &Client, boards: &'static [&'static str]) -> Background {
        let theirs = client.clone();
        spawn(async move { theirs.run_with_guest(boards).await });
        Background(client.clone())
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    #[cfg(not(target_arch = "wasm32"))]
    std::thread::spawn(move || crate::block_on(work));
    #[cfg(all(feature = "web", target_arch = "wasm32"))]
    wasm_bindgen_futures::spawn_local(work);
    #[cfg(all(not(feature = "web"), target_arch = "wasm32"))]
    drop(work); // there is no transport
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.close();
    }
}
