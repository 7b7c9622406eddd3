//! One session's facts to a thousand readers, beside a stream with no log behind it.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::figure::{Figure, Rounds, both, rate, time};
use super::place::{Bench, BenchServer};

const READERS: &str = "1000";
/// Below what a reader may lag behind, so that nobody is cut off however slow this machine is.
const WORDS: &str = "200";
/// Messages whose way to the last reader is timed, per round.
const ECHOES: &str = "40";

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let bare = bench.serve_bare()?;
        burst(bench, &bare, "bare", ["/stream", "/tell?count=200&bytes=66", "{}"], &mut rounds)?;
        drop(bare);
        let ours = bench.serve("fanout", "log = \"warn\"\n")?;
        let session = made(bench, &ours, &[("count", "1")])?;
        let body = json!({ "to": { "session": session }, "text": format!("!say {WORDS} 0") }).to_string();
        burst(bench, &ours, "ours", [&stream(&session), "/api/v1/messages", &body], &mut rounds)?;
        let busy = made(bench, &ours, &[("count", "1"), ("text", "!sleep 3500000")])?;
        let asked = [("readers", READERS), ("count", ECHOES), ("session", &busy), ("stream", &stream(&busy))];
        let took = bench.load(&ours, "echo", &asked)?;
        ensure!(took["cut_off"] == 0, "readers were cut off: {took}");
        rounds.note_all("last", &took["last"], &["p50_us", "p99_us"])?;
        rounds.note_all("spread", &took["spread"], &["p50_us", "p99_us"])?;
    }
    Ok(figures(&rounds))
}

fn stream(session: &str) -> String {
    format!("/api/v1/sessions/{session}/facts?after=0")
}

fn made(bench: &Bench, server: &BenchServer, asked: &[(&str, &str)]) -> Result<String> {
    let made = bench.load(server, "make", asked)?;
    Ok(made["sessions"][0].as_str().context("a session was made")?.to_owned())
}

fn burst(
    bench: &Bench,
    server: &BenchServer,
    name: &str,
    [stream, tell, body]: [&str; 3],
    rounds: &mut Rounds,
) -> Result<()> {
    let asked = [("readers", READERS), ("words", WORDS), ("stream", stream), ("tell", tell), ("body", body)];
    let took = bench.load(server, "burst", &asked)?;
    ensure!(took["cut_off"] == 0, "readers were cut off: {took}");
    rounds.note_all(name, &took, &["per_second", "cpu_ns"])
}

fn figures(rounds: &Rounds) -> Vec<Figure> {
    let median = |name: &str| rounds.median(name);
    let (ours, bare) = (median("ours.per_second"), median("bare.per_second"));
    let (our_cpu, bare_cpu) = (median("ours.cpu_ns") / 1e3, median("bare.cpu_ns") / 1e3);
    let micros = |us: f64| format!("{us:.2} µs");
    vec![
        Figure::new("deliveries to 1,000 readers", rate(ours))
            .beside(format!("bare stream {}", rate(bare)), ours / bare),
        Figure::new("server's CPU per delivery", micros(our_cpu))
            .beside(format!("bare stream {}", micros(bare_cpu)), our_cpu / bare_cpu),
        Figure::new(
            "receipt → last of 1,000 readers, p50 / p99",
            both(median("last.p50_us"), median("last.p99_us")),
        ),
        Figure::new("first → last of 1,000 readers, p50", time(median("spread.p50_us"))),
    ]
}
