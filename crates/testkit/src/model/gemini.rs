//! Gemini: `POST /v1beta/models/MODEL:generateContent`, `:streamGenerateContent` and `:countTokens`.

use serde_json::{Value, json};

use super::chat_request::{ChatMessage, ChatRequest, OfferedTool, string, texts};
use super::form::{Draft, Frame, nameless};

/// Here the model and whether to stream stand in the path.
pub(super) fn read(body: &Value, model: &str, streamed: bool) -> ChatRequest {
    let mut talk = ChatRequest { model: model.to_owned(), streamed, ..ChatRequest::default() };
    let system = if body["systemInstruction"].is_null() { "system_instruction" } else { "systemInstruction" };
    talk.system = texts(&body[system]["parts"]).join("\n");
    for content in body["contents"].as_array().into_iter().flatten() {
        if content["role"] == "model" {
            talk.said.push(ChatMessage::Model);
            continue;
        }
        for part in content["parts"].as_array().into_iter().flatten() {
            let response = &part["functionResponse"]["response"];
            if response.is_object() {
                talk.said.push(ChatMessage::Tool(result(response)));
            }
        }
        talk.person(&texts(&content["parts"]));
    }
    let declared = body["tools"].as_array().into_iter().flatten();
    for tool in declared.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten()) {
        let schema = if tool["parameters"].is_null() { "parametersJsonSchema" } else { "parameters" };
        talk.tools.push(OfferedTool { name: string(&tool["name"]), schema: tool[schema].clone() });
    }
    talk
}

fn result(response: &Value) -> String {
    ["output", "error", "result"]
        .iter()
        .find_map(|name| response[name].as_str())
        .map_or_else(|| response.to_string(), str::to_owned)
}

pub(super) fn count(talk: &ChatRequest) -> Value {
    json!({ "totalTokens": talk.bytes / 4 + 1 })
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    chunk(draft, &draft.text(), true)
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<Frame> {
    let (last, before) = draft.pieces().split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
    let mut frames: Vec<Frame> =
        before.iter().map(|piece| Frame::Piece(nameless(&chunk(draft, piece, false)))).collect();
    frames.push(Frame::Piece(nameless(&chunk(draft, last, true))));
    frames
}

fn chunk(draft: Draft<'_>, text: &str, is_last: bool) -> Value {
    let part = match draft.call() {
        Some((tool, arguments)) => json!({"functionCall": {"name": tool, "args": arguments}}),
        None => json!({"text": text}),
    };
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [part]}});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    let (tokens_in, tokens_out) = (draft.tokens_in(), draft.tokens_out());
    let usage = json!({
        "promptTokenCount": tokens_in, "candidatesTokenCount": tokens_out, "totalTokenCount": tokens_in + tokens_out,
    });
    json!({
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": draft.talk.model, "responseId": draft.id,
    })
}

pub(super) fn fault(status: u16) -> Value {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": format!("stub error {status}"), "status": name}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_tool_is_read() {
        let body = json!({
            "systemInstruction": {"parts": [{"text": "be good"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hello"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command", "response": {"output": "done"}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": {"type": "object"}}]}],
        });
        let talk = read(&body, "stub-1", true);
        assert_eq!(
            talk.said,
            [ChatMessage::Person("hello".into()), ChatMessage::Model, ChatMessage::Tool("done".into())]
        );
        assert_eq!(talk.tools[0].schema["type"], "object");
    }
}
