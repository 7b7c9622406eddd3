//! The other side of the bench: whoever asks a running server as fast as it answers, and notes how long that took.
//!
//! `load WHAT name=value …` does one measurement against `host=HOST:PORT` with `token=…` and prints it as one JSON
//! object. One thread, because the server shares the machine with it; requests are formatted beforehand. `http` is the
//! connection, and there is a file for each thing that is measured. Everything is bounded by count or by time.

mod accepts;
mod crowd;
mod fanout;
mod gets;
mod http;
mod make;
mod proc;
mod stall;
mod team;
mod turns;
mod twins;
mod word;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().expect("what to measure");
    let asked: BTreeMap<String, String> = arguments
        .map(|argument| {
            argument.split_once('=').map(|(name, value)| (name.into(), value.into())).expect("name=value")
        })
        .collect();
    let asked = Rc::new(Asked(asked));
    proc::raise_open_files();
    let measured = async {
        match what.as_str() {
            "accepts" => accepts::accepts(&asked).await,
            "crowd" => crowd::crowd(&asked).await,
            "gets" => gets::gets(&asked).await,
            "make" => make::make(&asked).await,
            "talk" => make::talk(&asked).await,
            "burst" => fanout::burst(&asked).await,
            "echo" => fanout::echo(&asked).await,
            "stall" => stall::stall(&asked).await,
            "twins" => twins::twins(&asked).await,
            "turns" => turns::turns(&asked).await,
            "word" => word::word(&asked).await,
            other => panic!("nobody can measure {other}"),
        }
    };
    println!("{}", tokio::task::LocalSet::new().run_until(measured).await);
}

/// The options on the command line.
struct Asked(BTreeMap<String, String>);

impl Asked {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("{name}=… is missing"))
    }

    fn number<T: FromStr>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_else(|_| panic!("{name} is not a number"))
    }

    /// The same, or this if it was not said.
    fn number_or<T: FromStr>(&self, name: &str, or: T) -> T {
        if self.0.contains_key(name) { self.number(name) } else { or }
    }

    /// The same with another value.
    fn with(&self, name: &str, value: &str) -> Self {
        let mut all = self.0.clone();
        all.insert(name.to_owned(), value.to_owned());
        Self(all)
    }

    fn host(&self) -> &str {
        self.text("host")
    }

    fn token(&self) -> &str {
        self.text("token")
    }
}

/// Times, sorted when they are looked at.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn note(&mut self, took: Duration) {
        self.0.push(took);
    }

    fn add(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// The p50, p99 and longest, in microseconds, as members of a JSON object.
    fn members(mut self) -> String {
        assert!(!self.0.is_empty(), "nothing was measured");
        self.0.sort_unstable();
        let at =
            |share: f64| self.0[((self.0.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e6;
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        format!(r#""p50_us":{p50:.0},"p99_us":{p99:.0},"max_us":{max:.0},"count":{}"#, self.0.len())
    }
}
