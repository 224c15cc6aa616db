use crate::client::Client;

/// Runs a client in the background until it is dropped: on a thread, or as a task of the browser.
pub struct Background(Client);

impl Background {
    /// Start to sync, and to follow the stream with the events of these boards.
    pub fn start(client: &Client, boards: &'static [&'static str]) -> Background {
        let theirs = client.clone();
        let work = async move { theirs.run(boards).await };
        #[cfg(not(target_arch = "wasm32"))]
        std::thread::spawn(move || crate::block_on(work));
        #[cfg(all(feature = "web", target_arch = "wasm32"))]
        wasm_bindgen_futures::spawn_local(work);
        #[cfg(all(not(feature = "web"), target_arch = "wasm32"))]
        drop(work); // there is no transport
        Background(client.clone())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.close();
    }
}
