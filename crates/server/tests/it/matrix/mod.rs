//! The authorization matrix: every operation of the interface, asked by everybody about everything. What ought to be
//! answered is said by `rule`, and compared with what the server answers to a real call.
//!
//! `rows` is the table of operations, `callers` who asks, `scene` what they ask about. A new operation without a row
//! fails the test, and so does a row without an operation.

mod callers;
mod rows;
mod rule;
mod scene;

use crate::town::{Town, read};
use callers::{Caller, Tries, callers, like, places};
use futures_util::StreamExt;
use kernel::{Grant, Role};
use rows::{Names, Row, rows};
use rule::{Answer, Bound, Spot, Stands, Takes, Target, Whom, expected};
use scene::{ALIASES, Scene};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Cells that are asked at the same time, as long as none changes what others look at.
const AT_ONCE: usize = 24;
/// A stream that says nothing of the session that it watches by then says nothing of it at all.
const WATCH_MAX: std::time::Duration = std::time::Duration::from_secs(30);
/// Wrong answers that are shown.
const SHOWN_MAX: usize = 60;

/// One question, and what ought to be answered.
#[derive(Clone, Copy)]
struct Cell<'a> {
    row: &'a Row,
    caller: &'a Caller,
    target: Target,
    expected: Answer,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_answers_everybody_by_the_rule() {
    let began = std::time::Instant::now();
    let town = Town::new(&ALIASES).await;
    let places = places(&town).await;
    let scene = Scene::new(&town, &places).await;
    let callers = callers(&town, &places).await;
    scene.endow(callers.iter().find(|caller| caller.is.role == Role::Viewer).unwrap()).await;
    let (rows, paths) = (rows(), operations());
    let cells = cells(&rows, &callers);
    // What changes people is asked first and one after the other: each such change lets everybody be looked up anew.
    let (alone, mut together): (Vec<_>, Vec<_>) =
        cells.iter().copied().partition(|cell| cell.changes_people());
    let mut wrong = Vec::new();
    for cell in alone {
        wrong.extend(ask(&scene, &paths, cell).await);
    }
    together.sort_by_key(|cell| matches!(cell.target, Target::Session(_)));
    let asked = futures_util::stream::iter(together).map(|cell| ask(&scene, &paths, cell));
    wrong.extend(asked.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect::<Vec<_>>().await);
    let operations: BTreeSet<_> = rows.iter().map(|row| row.operation).collect();
    println!(
        "{} cells of {} operations and {} callers in {:.1} s",
        cells.len(),
        operations.len(),
        callers.len(),
        began.elapsed().as_secs_f64()
    );
    wrong.sort();
    let shown = wrong.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} cells are wrong:\n{shown}", wrong.len());
    assert!(cells.len() > 5_000, "thousands of cells are tried, and not {}", cells.len());
    town.close().await;
}

#[test]
fn every_operation_has_its_rows_and_every_row_its_operation() {
    let known: BTreeSet<_> = operations().into_keys().collect();
    let tried: BTreeSet<_> = rows().iter().map(|row| row.operation.to_owned()).collect();
    let untried: Vec<_> = known.difference(&tried).collect();
    let gone: Vec<_> = tried.difference(&known).collect();
    assert!(untried.is_empty(), "operations without a row in matrix/rows.rs: {untried:?}");
    assert!(gone.is_empty(), "rows without an operation: {gone:?}");
}

/// Method and path of each operation.
fn operations() -> BTreeMap<String, (String, String)> {
    let document = serde_json::to_value(server::openapi_document()).unwrap();
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            all.insert(id, (method.to_uppercase(), path.clone()));
        }
    }
    all
}

fn cells<'a>(rows: &'a [Row], callers: &'a [Caller]) -> Vec<Cell<'a>> {
    let mut cells = Vec::new();
    for row in rows {
        for caller in callers {
            for &target in row.targets.iter().filter(|target| is_asked(caller, **target)) {
                let expected = match expected(row.takes, &caller.is, target, row.fine) {
                    (403, None) => (403, Some(row.not_theirs)),
                    (status, None) => (status, row.keeper),
                    expected => expected,
                };
                let cell = Cell { row, caller, target, expected };
                // There is one host, and they are still needed.
                if !(cell.needs_another() && caller.is.host) {
                    cells.push(cell);
                }
            }
        }
    }
    cells
}

/// True if this can be, and would say something new.
fn is_asked(caller: &Caller, target: Target) -> bool {
    let is_here = caller.is.bound == Bound::Here;
    let Target::Session(Spot { stands, ended, mine }) = target else { return !is_here };
    let (was, views) = (Stands::WasOwn, Stands::WasOwnViews);
    let looks = caller.is.role == Role::Viewer;
    match stands {
        // Who may only look has made none and said nothing.
        _ if looks && (mine || stands == was || stands == views) => false,
        _ if is_here => stands == Stands::Own && !ended && !mine,
        Stands::Own | Stands::Foreign | Stands::Unknown if !ended && !mine => true,
        Stands::Own | Stands::Person(Grant::View) | Stands::Org(Grant::Manage) => caller.tries >= Tries::Some,
        _ => caller.tries == Tries::All,
    }
}

impl Cell<'_> {
    /// True if it is to do something.
    fn acts(&self) -> bool {
        self.row.changes && self.expected.1.is_none()
    }

    /// True if it changes what somebody may do anywhere.
    fn changes_people(&self) -> bool {
        self.acts() && !matches!(self.target, Target::Session(_))
    }

    /// True if it changes the caller.
    fn needs_another(&self) -> bool {
        let me = matches!(
            self.target,
            Target::Nothing | Target::Person(Whom::Me) | Target::Membership(_, Whom::Me)
        );
        self.acts() && self.row.changes_caller && me
    }
}

/// The fault in the answer, if there is one.
async fn ask(
    scene: &Scene<'_>,
    paths: &BTreeMap<String, (String, String)>,
    cell: Cell<'_>,
) -> Option<String> {
    let another;
    let mut cell = cell;
    if cell.needs_another() {
        another = like(scene.town, scene.places, cell.caller, &scene.fresh()).await;
        cell.caller = &another;
    }
    let names = scene.names(cell.row, cell.caller, cell.target, cell.acts()).await;
    let (method, path) = paths.get(cell.row.operation)?;
    let path = filled(path, cell.row, &names);
    let token = match cell.caller.is.bound {
        Bound::Here => Some(names.token.as_str()),
        _ => cell.caller.token.as_deref(),
    };
    let mut request = scene.town.ask(token, method, &path);
    if let Some(body) = (cell.row.body)(&names) {
        request = match (cell.row.kind, body) {
            (Some(kind), Value::String(text)) => request.header("content-type", kind).body(text),
            (_, body) => request.json(&body),
        };
    }
    if let Some(accept) = cell.row.accept {
        request = request.header("accept", accept);
    }
    let response = request.send().await.unwrap();
    let (status, code, body) = match cell.row.takes {
        Takes::Watch if response.status().is_success() => watched(response, &names.session).await,
        _ => read(response).await,
    };
    let is = (status, code.as_deref());
    (is != cell.expected).then(|| told(&cell, method, &path, is, &body))
}

/// The answer of a stream that watches a session: `gone` if that is what it says of it, and nothing if it tells what happens there.
async fn watched(response: reqwest::Response, session: &str) -> (u16, Option<String>, Value) {
    let status = response.status().as_u16();
    let (mut frames, mut text) = (response.bytes_stream(), String::new());
    let first = async {
        while let Some(Ok(bytes)) = frames.next().await {
            text.push_str(&String::from_utf8_lossy(&bytes));
            for frame in text
                .split_inclusive("\n\n")
                .filter(|frame| frame.ends_with("\n\n") && frame.contains(session))
            {
                if frame.starts_with("event: gone\n") {
                    return Some("gone".to_owned());
                }
                if frame.starts_with("event: fact\n") {
                    return None;
                }
            }
        }
        Some("the stream ended".to_owned())
    };
    let said = tokio::time::timeout(WATCH_MAX, first).await;
    (status, said.unwrap_or(Some("nothing".to_owned())), Value::Null)
}

fn filled(path: &str, row: &Row, names: &Names) -> String {
    let mut path = path.to_owned();
    for value in (row.path)(names) {
        let (from, to) = (path.find('{').unwrap(), path.find('}').unwrap());
        path.replace_range(from..=to, value);
    }
    let query = (row.query)(names);
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

fn told(cell: &Cell<'_>, method: &str, path: &str, is: (u16, Option<&str>), body: &Value) -> String {
    let Cell { row, caller, target, expected } = cell;
    let way = if row.way.is_empty() { String::new() } else { format!(" ({})", row.way) };
    format!(
        "{}{way} by {} about {target:?}: expected {expected:?}, answered {is:?}: {method} {path}: {}",
        row.operation, caller.name, body["detail"]
    )
}
