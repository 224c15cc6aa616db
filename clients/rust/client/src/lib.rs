#![doc = include_str!("../README.md")]

mod background;
mod client;
mod error;
mod events;
mod games;
mod joins;
mod journal;
mod messages;
mod numbers;
mod progress;
mod session;
mod store;
mod stream;
mod text;
mod transport;
#[cfg(all(feature = "ureq", not(target_arch = "wasm32")))]
mod ureq_transport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod web;

pub use background::Background;
pub use client::{Client, Event};
pub use error::Error;
pub use games::{Change, Game};
pub use journal::Session;
pub use messages::*;
pub use solisync_klondike::{Draw, Level, Mode};
#[cfg(not(target_arch = "wasm32"))]
pub use store::FileStore;
pub use store::{MemoryStore, Store};
pub use transport::{Answer, Chunk, Done, Lost, Request, Transport, block_on};
#[cfg(all(feature = "ureq", not(target_arch = "wasm32")))]
pub use ureq_transport::UreqTransport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use web::{IndexedDbStore, WebTransport};
