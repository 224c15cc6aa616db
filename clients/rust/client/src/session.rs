//! Sessions: a refresh token works once, so each request for tokens has a key that is stored before, and is repeated
//! with it. The service may run on another database for a while, so a session that it refuses is set aside, and tried
//! again for a week; the key of a guest is always tried again.

use crate::client::{Client, Event, body};
use crate::error::Error;
use crate::journal::{Guest, Named, Refusal, Session, Signing};
use crate::messages::{Code, Me};
use crate::text::{account_of, claims_of};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::MutexGuard;
use unicode_normalization::UnicodeNormalization;

const AGAIN: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
pub(crate) struct Begun {
    #[serde(flatten)]
    pub session: Session,
    pub player: Option<Named>,
}

impl Begun {
    pub fn account(&self) -> Result<String, Error> {
        account_of(&self.session.access_token)
    }
}

/// The answer of a node of version 1.1, which knows no keys and has created another guest.
fn older_node() -> Error {
    Error::network(200, 0, "The answer comes from a node of an older version.")
}

impl Client {
    /// The id of the account that is signed in.
    pub fn player(&self) -> Option<String> {
        self.look(|journal| journal.usable().and(journal.player.clone()))
    }

    /// The tokens, for a game that keeps them in the keychain of the system.
    pub fn tokens(&self) -> Option<Session> {
        self.look(|journal| journal.session.clone())
    }

    /// Continue a session whose tokens are kept elsewhere. The store has the tokens, too: a session of the same account
    /// stays, unless the service refuses it and the given one is newer.
    pub fn adopt(&self, session: Session) -> Result<(), Error> {
        let given = claims_of(&session.access_token)?;
        let stays = self.look(|journal| {
            let mine = journal.session.as_ref().and_then(|mine| claims_of(&mine.access_token).ok());
            mine.is_some_and(|mine| mine.sub == given.sub && (journal.refused.is_none() || given.exp <= mine.exp))
        });
        if stays {
            return Ok(());
        }
        self.change(|journal| journal.sign_in(session, &given.sub, None))?;
        self.tell(Event::SignedIn);
        Ok(())
    }

    /// Set a session aside that the service refuses. After a week, forget it.
    pub(crate) fn end(&self, session: &Session, why: &str) -> Result<(), Error> {
        let now = self.0.transport.now();
        let is_first = self.change(|journal| {
            if !journal.has_session(session) {
                return false;
            }
            let refused = Refusal::counted(journal.refused.as_ref(), now, Some(why));
            if refused.is_final() {
                (journal.session, journal.retry_key, journal.refused) = (None, None, None);
                return false;
            }
            journal.refused.replace(refused).is_none()
        })?;
        if is_first {
            self.tell(Event::SignedOut(why.to_owned()));
        }
        Ok(())
    }

    /// Exchange the tokens, unless another call has done so.
    pub(crate) async fn renew(&self, spent: &Session) -> Result<(), Error> {
        let _one = self.0.refreshing.lock().await;
        self.renew_alone(spent).await
    }

    async fn renew_alone(&self, spent: &Session) -> Result<(), Error> {
        if !self.look(|journal| journal.has_session(spent)) {
            return Ok(());
        }
        let new = self.new_key();
        let key = self.change(|journal| journal.retry_key.get_or_insert(new).clone())?;
        let content = json!({"refresh_token": spent.refresh_token, "retry_key": key});
        match self.post::<Session>("/api/auth/refresh", &content).await {
            Ok(new) => {
                self.change(|journal| {
                    if journal.has_session(spent) {
                        (journal.session, journal.retry_key, journal.refused) = (Some(new), None, None);
                    }
                })?;
                self.tell(Event::Tokens);
                Ok(())
            }
            Err(error) if error.is(Code::Unauthorized) => {
                if self.by_key(&account_of(&spent.access_token)?, Some(spent)).await? {
                    self.tell(Event::Tokens);
                    return Ok(());
                }
                self.end(spent, error.code.as_str())?;
                Err(Error::session_ended())
            }
            Err(error) => Err(error),
        }
    }

    /// Exchange the tokens. Requests do this by themselves.
    pub async fn refresh(&self) -> Result<(), Error> {
        self.renew(&self.session(None)?).await
    }

    /// Wait until no refresh is without an answer, as it may have spent the tokens.
    pub(crate) async fn settled(&self) -> Result<MutexGuard<'_, ()>, Error> {
        let guard = self.0.refreshing.lock().await;
        if let Some(session) = self.look(|journal| journal.session.clone().filter(|_| journal.retry_key.is_some())) {
            self.renew_alone(&session).await?;
        }
        Ok(guard)
    }

    /// Try what was set aside, once a minute at most: the session, and the guest's key.
    pub(crate) async fn restore(&self) -> Result<(), Error> {
        let (session, player) = self.look(|journal| match journal.usable() {
            Some(_) => (None, None),
            None => (journal.session.clone(), journal.player.clone()),
        });
        let Some(player) = player else { return Ok(()) };
        let now = self.0.transport.elapsed();
        if self.0.tried.lock().unwrap().replace(now).is_some_and(|tried| now < tried + AGAIN) {
            return Ok(());
        }
        let _one = self.0.refreshing.lock().await;
        let restored = match &session {
            Some(session) => self.renew_alone(session).await.map(|()| true),
            None => self.by_key(&player, None).await,
        };
        match restored {
            Ok(true) => self.tell(Event::SignedIn),
            Err(error) if !error.is(Code::SignedOut) => return Err(error),
            _ => {}
        }
        Ok(())
    }

    /// Register or log in. After a lost answer, the same call gets the same session.
    pub(crate) async fn begun(&self, path: &str, username: &str, password: &str) -> Result<Begun, Error> {
        let new = self.new_key();
        let key = self.change(|journal| match &journal.signing {
            Some(signing) if signing.path == path && signing.username == username => signing.key.clone(),
            _ => {
                let signing = Signing { path: path.to_owned(), username: username.to_owned(), key: new };
                journal.signing.insert(signing).key.clone()
            }
        })?;
        let content = |password: &str| json!({"username": username, "password": password, "retry_key": key});
        let nfc: String = password.nfc().collect();
        let mut answer = self.post(path, &content(&nfc)).await;
        if nfc != password && answer.as_ref().is_err_and(|error: &Error| error.is(Code::InvalidCredentials)) {
            answer = self.post(path, &content(password)).await; // an older account may have it as it was typed
        }
        if answer.as_ref().is_err_and(|error| !error.passes()) {
            self.change(|journal| journal.signing = None)?;
        }
        answer
    }

    async fn begin(&self, path: &str, username: &str, password: &str) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        let _ = self.join_first().await; // after an error, the player sends the guest's games
        let begun = self.begun(path, username, password).await?;
        let account = begun.account()?;
        let _tokens = self.0.refreshing.lock().await;
        self.change(|journal| {
            let gone = journal.guest.take_if(|guest| guest.gone).filter(|guest| !guest.left);
            if let Some(id) = gone.and_then(|guest| guest.id) {
                journal.move_games(&id, &account, false);
            }
            journal.sign_in(begun.session, &account, begun.player.as_ref());
        })?;
        self.tell(Event::SignedIn);
        Ok(())
    }

    /// Create an account.
    pub async fn register(&self, username: &str, password: &str) -> Result<(), Error> {
        self.begin("/api/auth/register", username, password).await
    }

    /// Log in. Unsent games of another player stay in the store until that player logs in.
    pub async fn login(&self, username: &str, password: &str) -> Result<(), Error> {
        self.begin("/api/auth/login", username, password).await
    }

    /// The player's profile, from the service.
    pub async fn me(&self) -> Result<Me, Error> {
        self.call("GET", "/api/me", None).await
    }

    // Guests

    /// Continue the session, or sign in to this device's guest, which is created at first. A game calls this at its
    /// start.
    pub async fn guest(&self) -> Result<(), Error> {
        self.begin_guest(false).await
    }

    /// The same, but with another guest if this device's guest is gone (`guest_gone`), or a player's session is set
    /// aside. The unsent games of a gone guest go along.
    pub async fn new_guest(&self) -> Result<(), Error> {
        self.begin_guest(true).await
    }

    async fn begin_guest(&self, anew: bool) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        self.restore().await?;
        if self.player().is_some() {
            return Ok(());
        }
        if !anew && self.look(|journal| journal.session.is_some() && journal.is_guest != Some(true)) {
            return Err(Error::session_ended()); // a session is set aside that may be a player's
        }
        let _tokens = self.0.refreshing.lock().await;
        if self.guest_alone(anew, None).await? {
            self.tell(Event::SignedIn);
        }
        Ok(())
    }

    /// Sign in to the guest by its key, or create it, instead of the session `spent`. Return whether that was still the
    /// session.
    async fn guest_alone(&self, anew: bool, spent: Option<&Session>) -> Result<bool, Error> {
        let new = self.new_key();
        let guest = self.change(|journal| match &journal.guest {
            Some(guest) if !(guest.gone && anew) => guest.clone(),
            old => {
                let from = old.as_ref().filter(|old| !old.left).and_then(|old| old.id.clone());
                journal.guest.insert(Guest { key: new, from, ..Guest::default() }).clone()
            }
        })?;
        let create = guest.id.is_none() || guest.refused.as_ref().is_some_and(Refusal::is_final);
        let content = json!({"guest_key": guest.key, "create": create});
        let begun = match self.post::<Begun>("/api/auth/guest", &content).await {
            Ok(begun) => begun,
            Err(error) => {
                let now = self.0.transport.now();
                self.change(|journal| match &mut journal.guest {
                    Some(mine) if mine.key == guest.key && error.is(Code::GuestUnknown) => {
                        mine.refused = Some(Refusal::counted(mine.refused.as_ref(), now, None));
                    }
                    Some(mine) if mine.key == guest.key && error.is(Code::GuestGone) => mine.gone = true,
                    _ => {}
                })?;
                return Err(error);
            }
        };
        if begun.player.is_none() && !create {
            return Err(older_node());
        }
        let account = begun.account()?;
        self.change(|journal| {
            let mine = journal.session.as_ref().map(|session| &session.refresh_token);
            if journal.refused.is_none() && mine != spent.map(|spent| &spent.refresh_token) {
                return false;
            }
            if !guest.left {
                if let Some(id) = &guest.id {
                    journal.move_games(id, &account, true); // created again: the service has lost the account
                } else if let Some(from) = &guest.from {
                    journal.move_games(from, &account, false);
                }
            }
            let mine = || Guest { key: guest.key, id: Some(account.clone()), had: true, ..Guest::default() };
            journal.guest = begun.player.is_some().then(mine);
            journal.sign_in(begun.session, &account, begun.player.as_ref());
            true
        })
    }

    /// Sign in by the key, if the account is this device's guest.
    async fn by_key(&self, account: &str, spent: Option<&Session>) -> Result<bool, Error> {
        if !self.look(|journal| journal.has_key_of(account)) {
            return Ok(false);
        }
        match self.guest_alone(false, spent).await {
            Err(error) if error.is(Code::GuestUnknown) || error.is(Code::GuestGone) => Ok(false),
            answer => answer,
        }
    }

    /// A refresh token of the guest with this key.
    pub(crate) async fn token_of_guest(&self, key: &str) -> Result<String, Error> {
        let begun: Begun = self.post("/api/auth/guest", &json!({"guest_key": key, "create": false})).await?;
        if begun.player.is_none() {
            return Err(older_node());
        }
        Ok(begun.session.refresh_token)
    }

    /// Give a guest a key that began on a node of version 1.1.
    pub(crate) async fn give_key(&self, account: &str) -> Result<(), Error> {
        let needs_none = self.look(|journal| journal.is_guest == Some(false) || journal.has_key_of(account));
        if needs_none || self.0.keyed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let me = self.me().await?;
        self.0.keyed.store(true, Ordering::Relaxed);
        let new = self.new_key();
        let key = self.change(|journal| {
            journal.is_guest = Some(me.guest);
            let mine = journal.guest.take().filter(|guest| !me.guest || guest.id.as_deref() == Some(account));
            let made = || Guest { key: new, id: Some(account.to_owned()), ..Guest::default() };
            journal.guest = mine.or_else(|| me.guest.then(made));
            journal.guest.as_ref().filter(|_| me.guest).map(|guest| guest.key.clone())
        })?;
        let Some(key) = key else { return Ok(()) };
        self.flush().await?;
        let given = self.call::<IgnoredAny>("PUT", "/api/me/guest-key", Some(body(&json!({"guest_key": key})))).await;
        if given.is_ok() {
            self.change(|journal| {
                if let Some(guest) = journal.guest.as_mut().filter(|guest| guest.key == key) {
                    guest.had = true;
                }
            })?;
        }
        Ok(()) // a node of version 1.1 knows no keys
    }

    /// Give the guest a username and a password. After a lost answer, call this again with the same password.
    pub async fn claim(&self, username: &str, password: &str) -> Result<(), Error> {
        self.claim_with(username, password, false).await
    }

    /// The same, and list the guest's won games publicly.
    pub async fn claim_and_list_replays(&self, username: &str, password: &str) -> Result<(), Error> {
        self.claim_with(username, password, true).await
    }

    async fn claim_with(&self, username: &str, password: &str, list: bool) -> Result<(), Error> {
        let password: String = password.nfc().collect();
        let content = json!({"username": username, "password": password, "list_replays": list});
        let me: Me = self.call("POST", "/api/me/claim", Some(body(&content))).await?;
        self.change(|journal| {
            if journal.player.as_ref() == Some(&me.id) {
                journal.leave_guest();
            }
        })
    }
}
