//! Durable accepts: so many connections, each saying one message after the other, for so long.
//!
//! Messages go to the sessions of `sessions=ID,ID,…` in turns, so that none gets them all.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::http::{Connection, fresh_key, post, rekey};
use crate::{Asked, Times};

/// Bytes of words in each message; `raw` has as many.
const WORDS_BYTES: usize = 240;

pub(crate) async fn accepts(asked: &Rc<Asked>) -> String {
    let connections: usize = asked.number("connections");
    let length = Duration::from_millis(asked.number("ms"));
    let sessions: Vec<&str> = asked.text("sessions").split(',').collect();
    let times = Rc::new(RefCell::new(Times::default()));
    let mut under_way = Vec::new();
    for number in 0..connections {
        // Each connection has sessions of its own where there are enough of them.
        let own = sessions.iter().skip(number % sessions.len()).step_by(connections);
        let requests = own.map(|session| request(asked, session)).collect();
        let connection = Connection::open(asked.host()).await;
        under_way.push((connection, requests));
    }
    let began = Instant::now();
    let under_way: Vec<_> = under_way
        .into_iter()
        .map(|(connection, requests)| {
            tokio::task::spawn_local(talk(connection, requests, began + length, times.clone()))
        })
        .collect();
    for one in under_way {
        one.await.expect("it does not panic");
    }
    let took = began.elapsed().as_secs_f64();
    let times = times.take();
    let per_second = times.0.len() as f64 / took;
    format!(r#"{{"per_second":{per_second:.0},{}}}"#, times.members())
}

fn request(asked: &Asked, session: &str) -> Vec<u8> {
    let body = serde_json::json!({ "to": { "session": session }, "text": "x".repeat(WORDS_BYTES) });
    post(asked, "/api/v1/messages", &body)
}

async fn talk(
    mut connection: Connection,
    mut requests: Vec<Vec<u8>>,
    until: Instant,
    times: Rc<RefCell<Times>>,
) {
    let mut key = fresh_key();
    let mut turn = 0;
    while Instant::now() < until {
        let count = requests.len();
        let request = &mut requests[turn % count];
        turn += 1;
        // An odd factor visits every number, in an order as good as random: keys do not come sorted.
        key = key.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(1);
        rekey(request, key);
        let began = Instant::now();
        let answered = connection.ask(request).await;
        times.borrow_mut().note(began.elapsed());
        assert_eq!(answered.status, 202, "{}", String::from_utf8_lossy(&answered.body));
    }
}
