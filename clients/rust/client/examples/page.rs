//! The driver of the conformance suite in a page. `wasm-bindgen --target web` makes the module that the page imports.

#![cfg(all(feature = "web", target_arch = "wasm32"))]

mod commands;

use commands::{Command, Device, said};
use solisync_client::{IndexedDbStore, WebTransport};
use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::spawn_local;

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Obey the command of a line, and return the line of the answer.
#[wasm_bindgen]
pub async fn answer(line: String) -> String {
    let command: Command = serde_json::from_str(&line).expect("a command");
    if command.r#do == "open" {
        let store = IndexedDbStore::open("conformance").await.map_err(solisync_client::Error::from);
        let opened = store.and_then(|store| Device::open(&command, store, WebTransport));
        DEVICE.set(opened.as_ref().ok().cloned());
        return said(command.id, opened.map(|device| device.opened()));
    }
    let device = DEVICE.with_borrow(Clone::clone).expect("an open store");
    device.obey(command, |device| spawn_local(device.follow())).await
}
