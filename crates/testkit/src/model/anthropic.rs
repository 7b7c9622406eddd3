//! Messages of Anthropic: `POST /v1/messages` and `/v1/messages/count_tokens`.

use serde_json::{Value, json};

use super::chat_request::{ChatMessage, ChatRequest, OfferedTool, string, texts};
use super::form::{Draft, Frame, named};

pub(super) fn read(body: &Value) -> ChatRequest {
    let mut talk = ChatRequest {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        system: texts(&body["system"]).join("\n"),
        ..ChatRequest::default()
    };
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("assistant") => {
                talk.said.push(ChatMessage::Model);
                continue;
            }
            // Claude Code describes its surroundings in the middle of the conversation.
            Some("system") => {
                talk.system += &texts(&message["content"]).join("\n");
                continue;
            }
            _ => {}
        }
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                talk.said.push(ChatMessage::Tool(texts(&block["content"]).join("\n")));
            }
        }
        talk.person(&texts(&message["content"]));
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        talk.tools.push(OfferedTool { name: string(&tool["name"]), schema: tool["input_schema"].clone() });
    }
    talk
}

pub(super) fn count(talk: &ChatRequest) -> Value {
    json!({ "input_tokens": talk.bytes / 4 + 1 })
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let content = match draft.call() {
        Some((tool, arguments)) => {
            json!({"type": "tool_use", "id": call_id(draft), "name": tool, "input": arguments})
        }
        None => json!({"type": "text", "text": draft.text()}),
    };
    let mut message = message(draft);
    message["content"] = json!([content]);
    message["stop_reason"] = json!(stop_reason(draft));
    message["usage"]["output_tokens"] = json!(draft.tokens_out());
    message
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<Frame> {
    let plain = |event: Value| Frame::Plain(named(&event));
    let mut frames = vec![plain(json!({"type": "message_start", "message": message(draft)}))];
    let block = match draft.call() {
        Some((tool, _)) => json!({"type": "tool_use", "id": call_id(draft), "name": tool, "input": {}}),
        None => json!({"type": "text", "text": ""}),
    };
    frames.push(plain(json!({"type": "content_block_start", "index": 0, "content_block": block})));
    frames.push(plain(json!({"type": "ping"})));
    if let Some((_, arguments)) = draft.call() {
        let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
        frames.push(plain(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    }
    for piece in draft.pieces() {
        let delta = json!({"type": "text_delta", "text": piece});
        let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        frames.push(Frame::Piece(named(&event)));
    }
    frames.push(plain(json!({"type": "content_block_stop", "index": 0})));
    let delta = json!({"stop_reason": stop_reason(draft), "stop_sequence": null});
    let usage = json!({"output_tokens": draft.tokens_out()});
    frames.push(plain(json!({"type": "message_delta", "delta": delta, "usage": usage})));
    frames.push(plain(json!({"type": "message_stop"})));
    frames
}

fn message(draft: Draft<'_>) -> Value {
    let usage = json!({
        "input_tokens": draft.tokens_in(), "output_tokens": 1,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    });
    json!({
        "id": format!("msg_{}", draft.id), "type": "message", "role": "assistant", "model": draft.talk.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    })
}

fn call_id(draft: Draft<'_>) -> String {
    format!("toolu_{}", draft.id)
}

fn stop_reason(draft: Draft<'_>) -> &'static str {
    if draft.call().is_some() { "tool_use" } else { "end_turn" }
}

pub(super) fn fault(status: u16) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": format!("stub error {status}")}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_tool_is_read() {
        let talk = read(&json!({
            "model": "stub-1", "system": [{"type": "text", "text": "be good"}], "stream": true,
            "messages": [
                {"role": "user", "content": "hello"},
                {"role": "system", "content": "\nhere"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "done"}]},
                    {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                ]},
            ],
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        }));
        let want =
            [ChatMessage::Person("hello".into()), ChatMessage::Model, ChatMessage::Tool("done".into())];
        assert_eq!(
            (talk.said.as_slice(), talk.streamed, talk.system.as_str()),
            (&want[..], true, "be good\nhere")
        );
        assert_eq!(talk.tools[0].name, "Bash");
    }
}
