//! An agent that speaks ACP and knows nothing but the time: it answers each message with the moment it read it and the
//! moment it began to write, in nanoseconds of the machine's own clock, which all processes share. For the bench.

use std::io::{BufRead, Write, stdin, stdout};

use serde_json::{Value, json};

fn main() {
    for line in stdin().lock().lines().map_while(Result::ok) {
        let read = nanoseconds();
        let Ok(heard) = serde_json::from_str::<Value>(&line) else { continue };
        match heard["method"].as_str() {
            Some("initialize") => answer(
                &heard,
                &json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true },
                         "agentInfo": { "name": "clock", "version": "1.0.0" } }),
            ),
            Some("session/new") => {
                answer(&heard, &json!({ "sessionId": format!("clock-{}", std::process::id()) }))
            }
            Some("session/load" | "session/resume") => answer(&heard, &json!({})),
            Some("session/prompt") => {
                let words = json!({ "type": "text", "text": format!("{read} {}", nanoseconds()) });
                let update = json!({ "sessionUpdate": "agent_message_chunk", "content": words });
                let params = json!({ "sessionId": heard["params"]["sessionId"], "update": update });
                say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
                answer(&heard, &json!({ "stopReason": "end_turn" }));
            }
            _ if !heard["id"].is_null() => say(&json!({ "jsonrpc": "2.0", "id": heard["id"],
                "error": { "code": -32601, "message": "this agent only knows the time" } })),
            _ => {}
        }
    }
}

fn answer(heard: &Value, result: &Value) {
    say(&json!({ "jsonrpc": "2.0", "id": heard["id"], "result": result }));
}

fn say(value: &Value) {
    let mut out = stdout().lock();
    let line = format!("{value}\n");
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

fn nanoseconds() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
