//! Chat completions of OpenAI: `POST /v1/chat/completions`.

use serde_json::{Value, json};

use super::chat_request::{ChatMessage, ChatRequest, OfferedTool, string, texts};
use super::form::{Draft, Frame, nameless};

pub(super) fn read(body: &Value) -> ChatRequest {
    let mut talk = ChatRequest {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        ..ChatRequest::default()
    };
    for message in body["messages"].as_array().into_iter().flatten() {
        let texts = texts(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => talk.system += &texts.join("\n"),
            Some("assistant") => talk.said.push(ChatMessage::Model),
            Some("tool") => talk.said.push(ChatMessage::Tool(texts.join("\n"))),
            _ => talk.person(&texts),
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        talk.tools
            .push(OfferedTool { name: string(&function["name"]), schema: function["parameters"].clone() });
    }
    talk
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": draft.text()});
    if let Some((tool, arguments)) = draft.call() {
        message = json!({"role": "assistant", "content": null, "tool_calls": [call(draft, tool, arguments)]});
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(draft)});
    let mut answer = answer(draft, "chat.completion");
    answer["choices"] = json!([choice]);
    answer["usage"] = usage(draft);
    answer
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<Frame> {
    let chunk = |delta: Value, finish_reason: Value| {
        let mut chunk = answer(draft, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish_reason}]);
        chunk
    };
    let first = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    let mut frames = vec![Frame::Plain(nameless(&first))];
    if let Some((tool, arguments)) = draft.call() {
        let mut call = call(draft, tool, arguments);
        call["index"] = json!(0);
        frames.push(Frame::Plain(nameless(&chunk(json!({"tool_calls": [call]}), Value::Null))));
    }
    for piece in draft.pieces() {
        frames.push(Frame::Piece(nameless(&chunk(json!({"content": piece}), Value::Null))));
    }
    frames.push(Frame::Plain(nameless(&chunk(json!({}), json!(finish_reason(draft))))));
    let mut last = answer(draft, "chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage(draft);
    frames.push(Frame::Plain(nameless(&last)));
    frames.push(Frame::Plain("data: [DONE]\n\n".to_owned()));
    frames
}

fn answer(draft: Draft<'_>, kind: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", draft.id), "object": kind, "created": 1_700_000_000, "model": draft.talk.model,
    })
}

fn call(draft: Draft<'_>, tool: &str, arguments: &Value) -> Value {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    json!({"id": format!("call_{}", draft.id), "type": "function", "function": function})
}

fn finish_reason(draft: Draft<'_>) -> &'static str {
    if draft.call().is_some() { "tool_calls" } else { "stop" }
}

fn usage(draft: Draft<'_>) -> Value {
    let (tokens_in, tokens_out) = (draft.tokens_in(), draft.tokens_out());
    json!({
        "prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0},
    })
}

/// Both protocols of OpenAI tell faults in the same way.
pub(super) fn fault(status: u16) -> Value {
    let code = match status {
        401 => "invalid_api_key",
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": format!("stub error {status}"), "type": code, "param": null, "code": code}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_tool_is_read() {
        let talk = read(&json!({
            "model": "stub-1", "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": null, "tool_calls": []},
                {"role": "tool", "tool_call_id": "t", "content": "done"},
            ],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
        }));
        let want =
            [ChatMessage::Person("hello".into()), ChatMessage::Model, ChatMessage::Tool("done".into())];
        assert_eq!(
            (talk.said.as_slice(), talk.streamed, talk.system.as_str()),
            (&want[..], false, "be good")
        );
        assert_eq!(talk.tools[0].name, "bash");
    }
}
