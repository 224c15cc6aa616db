//! A plugin for Bevy, to copy into a game. It compiles against the parts of Bevy that it needs.

use bevy_app::{App, Plugin, Update};
use bevy_ecs::prelude::{Message, MessageReader, MessageWriter, Res, Resource};
use bevy_tasks::IoTaskPool;
use solisync_client::{Background, Client, Error, Event, Game};

/// The player's device, for every system that shows progress or signs in.
#[derive(Resource)]
pub struct Cloud {
    /// Its methods that send requests run in the task pools. An error if another copy of the game is running.
    pub client: Result<Client, Error>,
    _background: Option<Background>,
}

/// The player wants a name for the guest of this device.
#[derive(Clone, Message)]
pub struct Claimed(pub String, pub String);

/// A game has ended.
#[derive(Message)]
pub struct Finished(pub Game);

/// Something to show: an event of the service, or an error.
#[derive(Message)]
pub struct Heard(pub Event);

/// Saves finished games, and syncs them.
pub struct CloudPlugin {
    /// The address of the service.
    pub url: String,
    /// The directory of the player's games.
    pub directory: std::path::PathBuf,
}

impl Plugin for CloudPlugin {
    fn build(&self, app: &mut App) {
        app.add_message::<Finished>().add_message::<Claimed>().add_message::<Heard>();
        let client = Client::open(&self.url, &self.directory);
        if let Err(error) = &client {
            app.world_mut().write_message(Heard(Event::Trouble(error.clone())));
        }
        let _background = client.as_ref().ok().map(|client| Background::with_guest(client, &[]));
        app.insert_resource(Cloud { client, _background });
        app.add_systems(Update, (save, claim, hear));
    }
}

fn save(cloud: Res<Cloud>, mut games: MessageReader<Finished>, mut heard: MessageWriter<Heard>) {
    for Finished(game) in games.read() {
        if let Err(error) = cloud.client.clone().and_then(|client| client.finish(game.clone())) {
            heard.write(Heard(Event::Trouble(error)));
        }
    }
}

fn claim(cloud: Res<Cloud>, mut claims: MessageReader<Claimed>, mut heard: MessageWriter<Heard>) {
    for claimed in claims.read() {
        let Claimed(name, password) = claimed.clone();
        match cloud.client.clone() {
            Err(error) => _ = heard.write(Heard(Event::Trouble(error))),
            Ok(client) => {
                let claim =
                    async move { client.claim(&name, &password).await.unwrap_or_else(|error| client.report(error)) };
                IoTaskPool::get_or_init(Default::default).spawn(claim).detach();
            }
        }
    }
}

fn hear(cloud: Res<Cloud>, mut heard: MessageWriter<Heard>) {
    let Ok(client) = &cloud.client else { return };
    heard.write_batch(std::iter::from_fn(|| client.next_event()).map(Heard));
}
