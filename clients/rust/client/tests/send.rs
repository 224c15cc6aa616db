//! Games put the client into any executor, and into resources of an engine.

use solisync_client::{Background, Change, Client, Error, Event};

fn shared<T: Send + Sync + 'static>() {}
fn sent<T: Send>(_: T) {}

#[test]
fn client_is_shared_and_its_futures_run_on_any_thread() {
    shared::<Client>();
    shared::<Background>();
    shared::<Error>();
    shared::<Event>();
    let _futures = |client: &Client| {
        sent(client.guest());
        sent(client.register("ann", "correct horse"));
        sent(client.claim("ann", "correct horse"));
        sent(client.join("ann", "correct horse"));
        sent(client.sync());
        sent(client.push(&Change::default()));
        sent(client.verdict(""));
        sent(client.run(&[]));
        sent(client.sign_out());
    };
}
