//! The wire of ACP: JSON-RPC in lines. Only what we say and hear of it; pure.

use serde_json::{Value, json};

use crate::agent_protocol::ProtocolOutput;

/// The version of the protocol we speak.
pub(super) const VERSION: u64 = 1;
/// The method is not one of ours.
const NO_SUCH_METHOD: i64 = -32601;
/// The other side has taken its request back.
const CANCELLED: i64 = -32800;

/// A line, by what it is.
#[derive(Debug, PartialEq)]
pub(super) enum RpcMessage {
    /// The answer to our request of that number.
    Answer {
        id: u64,
        answer: Result<Value, RpcError>,
    },
    /// It wants an answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// An error as it stands in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

impl RpcError {
    /// In words, for people.
    pub(super) fn words(&self) -> String {
        let detail = match &self.data {
            Value::Null => String::new(),
            Value::String(text) => format!(": {text}"),
            Value::Object(fields) => {
                let said = ["details", "message"].iter().find_map(|key| fields.get(*key)?.as_str());
                said.map_or_else(|| format!(" {}", self.data), |text| format!(": {text}"))
            }
            other => format!(" {other}"),
        };
        format!("{}{detail} ({})", self.message, self.code)
    }
}

/// The message in a line; nothing if it is no JSON-RPC.
pub(super) fn read(line: &str) -> Option<RpcMessage> {
    let Value::Object(mut said) = serde_json::from_str(line).ok()? else { return None };
    let mut take = |key: &str| said.remove(key);
    let (id, method, params) = (take("id"), take("method"), take("params").unwrap_or(Value::Null));
    match (id, method) {
        (Some(id), Some(Value::String(method))) if !id.is_null() => {
            Some(RpcMessage::Request { id, method, params })
        }
        (_, Some(Value::String(method))) => Some(RpcMessage::Notification { method, params }),
        (Some(id), None) => {
            let answer = match (take("error"), take("result")) {
                (Some(error), _) if !error.is_null() => Err(wrong(&error)),
                (_, result) => Ok(result.unwrap_or(Value::Null)),
            };
            Some(RpcMessage::Answer { id: id.as_u64()?, answer })
        }
        _ => None,
    }
}

fn wrong(error: &Value) -> RpcError {
    RpcError {
        code: error["code"].as_i64().unwrap_or(0),
        message: error["message"].as_str().unwrap_or("an error without words").to_owned(),
        data: error["data"].clone(),
    }
}

pub(super) fn request(out: &mut ProtocolOutput, id: u64, method: &str, params: &Value) {
    out.send_line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
}

pub(super) fn notify(out: &mut ProtocolOutput, method: &str, params: &Value) {
    out.send_line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

pub(super) fn answer(out: &mut ProtocolOutput, id: &Value, result: &Value) {
    out.send_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

/// Nothing may wait for us for ever: what we do not know is answered, too.
pub(super) fn refuse(out: &mut ProtocolOutput, id: &Value, method: &str) {
    let error = json!({ "code": NO_SUCH_METHOD, "message": format!("this client has no {method}") });
    out.send_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
}

pub(super) fn take_back(out: &mut ProtocolOutput, id: &Value) {
    let error = json!({ "code": CANCELLED, "message": "cancelled" });
    out.send_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_whatever_the_order_of_their_keys() {
        let answer = RpcMessage::Answer { id: 3, answer: Ok(json!({"a": 1})) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","result":{"a":1},"id":3}"#), Some(answer));
        let request = RpcMessage::Request { id: json!("x"), method: "m".to_owned(), params: Value::Null };
        assert_eq!(read(r#"{"id":"x","jsonrpc":"2.0","method":"m"}"#), Some(request));
        let notification = RpcMessage::Notification { method: "m".to_owned(), params: json!([]) };
        assert_eq!(read(r#"{"method":"m","params":[]}"#), Some(notification));
        let wrong = RpcError { code: -1, message: "no".to_owned(), data: json!("why") };
        assert_eq!(wrong.words(), "no: why (-1)");
        let error = r#"{"id":1,"error":{"code":-1,"message":"no","data":"why"},"result":null}"#;
        assert_eq!(read(error), Some(RpcMessage::Answer { id: 1, answer: Err(wrong) }));
    }

    #[test]
    fn what_is_no_json_rpc_is_nothing() {
        for line in ["", "hello", "[]", "{}", "1", r#"{"id":"a"}"#, r#"{"method":7}"#, &"[".repeat(100_000)] {
            assert_eq!(read(line), None, "{line:.20}");
        }
    }
}
