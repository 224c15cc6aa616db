//! Sessions and joins when answers are wrong or lost.

mod scripted;

use scripted::{Answers, finish, refused, started, world};
use serde_json::json;
use solisync_client::{MemoryStore, block_on};

#[test]
fn join_is_sent_again_at_once_when_a_proxy_has_refused_it() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    finish(&client, 1);
    block_on(client.guest()).unwrap();
    answers.set(&[("/api/me/join", 403, json!("<html>"))]);
    assert!(block_on(client.join("ann", "correct horse")).unwrap_err().passes());
    answers.set(&[("/api/me/join", 403, refused("suspended"))]);
    block_on(client.sync()).unwrap();
    assert_eq!(asked.take("/api/me/join").len(), 3 + 1, "three attempts, and one with the answer of the service");
    block_on(client.sync()).unwrap();
    assert_eq!(asked.take("/api/me/join").len(), 0, "the service is asked again a day later");
}
