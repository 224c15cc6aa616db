use crate::transport::{Answer, Chunk, Done, Lost, Request, Transport};
use std::io::Read;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::spawn;
use std::time::{Duration, Instant, SystemTime};
use ureq::{Agent, AsSendBody, Body, config::ConfigBuilder, http, typestate::AgentScope};

const LARGEST: u64 = 32 << 20;
const HOUR: Duration = Duration::from_secs(3_600);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The end of a pause, and what follows.
type Pause = (Instant, Done<()>);

/// The pauses of all transports, on one thread.
static PAUSES: LazyLock<Sender<Pause>> = LazyLock::new(|| {
    let (sender, pauses) = channel();
    spawn(move || end_pauses(&pauses));
    sender
});

fn end_pauses(pauses: &Receiver<Pause>) {
    let mut waiting: Vec<Pause> = Vec::new();
    loop {
        let next = waiting.iter().map(|(end, _)| end.saturating_duration_since(Instant::now())).min();
        waiting.extend(pauses.recv_timeout(next.unwrap_or(HOUR)));
        let now = Instant::now();
        for (_, done) in waiting.extract_if(.., |(end, _)| *end <= now) {
            done(());
        }
    }
}

/// Sends each request on a thread of its own, so that it blocks no executor.
#[derive(Clone)]
pub struct UreqTransport {
    agent: Agent,
    offset: i32,
}

impl Default for UreqTransport {
    fn default() -> Self {
        UreqTransport::new(Agent::config_builder())
    }
}

impl UreqTransport {
    /// Use a configuration of ureq, with another proxy or other certificates.
    pub fn new(config: ConfigBuilder<AgentScope>) -> Self {
        let config = config.http_status_as_error(false).max_redirects(0).max_redirects_will_error(false);
        let config = config.user_agent(concat!("solisync-client/", env!("CARGO_PKG_VERSION")));
        UreqTransport { agent: config.build().into(), offset: 0 }
    }

    /// Set the minutes by which the player's time is ahead of UTC. It decides the week of a game.
    pub fn with_offset(self, minutes: i32) -> Self {
        UreqTransport { offset: minutes, ..self }
    }

    fn ask(&self, request: Request, streams: bool) -> Result<http::Response<Body>, Lost> {
        let mut builder = http::Request::builder().method(request.method).uri(request.url);
        if let Some(token) = request.token {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        let timeout = Some(request.timeout);
        match request.body {
            None if request.method == "GET" => self.run(builder.body(()), timeout, streams),
            body => {
                builder = builder.header("content-type", "application/json");
                self.run(builder.body(body.unwrap_or_default()), timeout, streams)
            }
        }
    }

    fn run<T: AsSendBody>(
        &self,
        request: http::Result<http::Request<T>>,
        timeout: Option<Duration>,
        streams: bool,
    ) -> Result<http::Response<Body>, Lost> {
        let config = self.agent.configure_request(request.map_err(|error| Lost(error.to_string()))?);
        let request = match streams {
            false => config.timeout_global(timeout).build(),
            true => config.timeout_recv_response(timeout).timeout_per_read(timeout).build(),
        };
        self.agent.run(request).map_err(|error| Lost(error.to_string()))
    }

    fn read_stream(&self, request: Request, mut each: Box<dyn FnMut(Chunk) -> bool + Send>) {
        let Ok(answer) = self.ask(request, true) else {
            each(Chunk::End);
            return;
        };
        if answer.status() != 200 {
            each(whole(answer).map_or(Chunk::End, Chunk::Begun));
            return;
        }
        if !each(Chunk::Begun(head(&answer))) {
            return;
        }
        let mut reader = answer.into_body().into_reader();
        let mut buffer = [0; 4096];
        loop {
            let chunk = match reader.read(&mut buffer) {
                Ok(0) | Err(_) => Chunk::End,
                Ok(read) => Chunk::Bytes(buffer[..read].to_vec()),
            };
            let ends = matches!(chunk, Chunk::End);
            if !each(chunk) || ends {
                return;
            }
        }
    }
}

fn head(answer: &http::Response<Body>) -> Answer {
    let headers = answer
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Answer { status: answer.status().as_u16(), headers: headers.collect(), body: Vec::new() }
}

fn whole(mut answer: http::Response<Body>) -> Result<Answer, Lost> {
    let body = answer.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(|error| Lost(error.to_string()))?;
    Ok(Answer { body, ..head(&answer) })
}

impl Transport for UreqTransport {
    fn send(&self, request: Request, done: Done<Result<Answer, Lost>>) {
        let transport = self.clone();
        spawn(move || done(transport.ask(request, false).and_then(whole)));
    }

    fn after(&self, pause: Duration, done: Done<()>) {
        let _ = PAUSES.send((Instant::now() + pause, done));
    }

    fn stream(&self, request: Request, each: Box<dyn FnMut(Chunk) -> bool + Send>) {
        let transport = self.clone();
        spawn(move || transport.read_stream(request, each));
    }

    fn now(&self) -> i64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as i64)
    }

    fn offset(&self) -> i32 {
        self.offset
    }

    fn elapsed(&self) -> Duration {
        START.elapsed()
    }

    fn random(&self, bytes: &mut [u8]) {
        getrandom::getrandom(bytes).expect("the system has random numbers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_end_in_their_order_on_one_thread() {
        let (sender, ended) = channel();
        for millis in [90, 1, 40] {
            let sender = sender.clone();
            let done = move |()| sender.send((millis, std::thread::current().id())).unwrap();
            UreqTransport::default().after(Duration::from_millis(millis), Box::new(done));
        }
        let (order, threads): (Vec<_>, Vec<_>) = ended.iter().take(3).unzip();
        assert_eq!(order, [1, 40, 90]);
        assert!(threads.iter().all(|thread| *thread == threads[0]));
    }
}
