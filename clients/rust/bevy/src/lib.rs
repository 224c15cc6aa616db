//! A plugin for Bevy, to copy into a game. It compiles against the parts of Bevy that it needs.

use bevy_app::{App, Plugin, Update};
use bevy_ecs::prelude::{Message, MessageReader, MessageWriter, Res, Resource};
use bevy_tasks::IoTaskPool;
use solisync_client::{Background, Client, Event, Game};

/// The player's device, for every system that shows progress or signs in.
#[derive(Resource)]
pub struct Cloud {
    /// Its methods that send requests run in the task pools.
    pub client: Client,
    _background: Background,
}

/// The player wants a name for the guest of this device.
#[derive(Message)]
pub struct Claimed(pub String, pub String);

/// A game has ended.
#[derive(Message)]
pub struct Finished(pub Game);

/// Something has happened on the service.
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
        let client = Client::open(&self.url, &self.directory).expect("the directory can be used");
        let _background = Background::with_guest(&client, &[]);
        app.insert_resource(Cloud { client, _background });
        app.add_message::<Finished>().add_message::<Claimed>().add_message::<Heard>();
        app.add_systems(Update, (save, claim, hear));
    }
}

fn save(cloud: Res<Cloud>, mut games: MessageReader<Finished>, mut heard: MessageWriter<Heard>) {
    for Finished(game) in games.read() {
        if let Err(error) = cloud.client.finish(game.clone()) {
            heard.write(Heard(Event::Trouble(error)));
        }
    }
}

fn claim(cloud: Res<Cloud>, mut claims: MessageReader<Claimed>) {
    for Claimed(name, password) in claims.read() {
        let (client, name, password) = (cloud.client.clone(), name.clone(), password.clone());
        let claim = async move { client.claim(&name, &password).await }; // a game shows its error
        IoTaskPool::get_or_init(Default::default).spawn(claim).detach();
    }
}

fn hear(cloud: Res<Cloud>, mut heard: MessageWriter<Heard>) {
    while let Some(event) = cloud.client.next_event() {
        heard.write(Heard(event));
    }
}
