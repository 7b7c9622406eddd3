//! Responses of OpenAI: `POST /v1/responses`.

use serde_json::{Value, json};

use super::chat_request::{ChatMessage, ChatRequest, OfferedTool, string, texts};
use super::form::{Draft, Frame, named};

pub(super) fn read(body: &Value) -> ChatRequest {
    let mut talk = ChatRequest {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        system: string(&body["instructions"]),
        ..ChatRequest::default()
    };
    if let Some(text) = body["input"].as_str() {
        talk.person(&[text]);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        read_item(&mut talk, item);
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        // Built-in tools have a type and no name.
        let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default().to_owned();
        talk.tools.push(OfferedTool { name, schema: tool["parameters"].clone() });
    }
    talk
}

fn read_item(talk: &mut ChatRequest, item: &Value) {
    let kind = item["type"].as_str().unwrap_or("message");
    match (kind, item["role"].as_str()) {
        ("message", Some("system" | "developer")) => talk.system += &texts(&item["content"]).join("\n"),
        ("message", Some("assistant")) => talk.said.push(ChatMessage::Model),
        ("message", _) => talk.person(&texts(&item["content"])),
        ("function_call_output" | "custom_tool_call_output", _) => {
            talk.said.push(ChatMessage::Tool(printed(&texts(&item["output"]).join("\n")).to_owned()));
        }
        _ => {}
    }
}

/// Codex puts a few lines about the process before what it printed.
fn printed(output: &str) -> &str {
    output.split_once("\nOutput:\n").map_or(output, |(_, printed)| printed)
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    answer(draft, "completed", vec![item(draft, "completed", &draft.text())])
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<Frame> {
    let item_id = item(draft, "completed", "")["id"].clone();
    let mut events = vec![
        (false, json!({"type": "response.created", "response": answer(draft, "in_progress", vec![])})),
        (false, json!({"type": "response.in_progress", "response": answer(draft, "in_progress", vec![])})),
    ];
    let begun = item(draft, "in_progress", "");
    events.push((false, json!({"type": "response.output_item.added", "output_index": 0, "item": begun})));
    match draft.call() {
        Some((_, arguments)) => {
            let arguments = arguments.to_string();
            let kind = "response.function_call_arguments";
            events.push((false, json!({"type": format!("{kind}.delta"), "item_id": item_id, "output_index": 0, "delta": arguments})));
            events.push((false, json!({"type": format!("{kind}.done"), "item_id": item_id, "output_index": 0, "arguments": arguments})));
        }
        None => {
            let at = |mut event: Value| {
                event["item_id"] = item_id.clone();
                event["output_index"] = json!(0);
                event["content_index"] = json!(0);
                event
            };
            events.push((false, at(json!({"type": "response.content_part.added", "part": part("")}))));
            for piece in draft.pieces() {
                events.push((true, at(json!({"type": "response.output_text.delta", "delta": piece}))));
            }
            let text = draft.text();
            events.push((false, at(json!({"type": "response.output_text.done", "text": text}))));
            events.push((false, at(json!({"type": "response.content_part.done", "part": part(&text)}))));
        }
    }
    let done = item(draft, "completed", &draft.text());
    events.push((false, json!({"type": "response.output_item.done", "output_index": 0, "item": done})));
    events.push((false, json!({"type": "response.completed", "response": whole(draft)})));
    let number = |(number, (is_piece, mut event)): (usize, (bool, Value))| {
        event["sequence_number"] = json!(number);
        if is_piece { Frame::Piece(named(&event)) } else { Frame::Plain(named(&event)) }
    };
    events.into_iter().enumerate().map(number).collect()
}

fn answer(draft: Draft<'_>, status: &str, output: Vec<Value>) -> Value {
    let (tokens_in, tokens_out) = (draft.tokens_in(), draft.tokens_out());
    let usage = json!({
        "input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens_out, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    });
    json!({
        "id": format!("resp_{}", draft.id), "object": "response", "created_at": 1_700_000_000, "status": status,
        "model": draft.talk.model, "output": output, "error": null, "incomplete_details": null,
        "usage": if status == "completed" { usage } else { Value::Null },
    })
}

fn item(draft: Draft<'_>, status: &str, text: &str) -> Value {
    if let Some((tool, arguments)) = draft.call() {
        let arguments = if status == "completed" { arguments.to_string() } else { String::new() };
        return json!({
            "id": format!("fc_{}", draft.id), "type": "function_call", "status": status,
            "call_id": format!("call_{}", draft.id), "name": tool, "arguments": arguments,
        });
    }
    let content = if status == "completed" { vec![part(text)] } else { vec![] };
    json!({
        "id": format!("msg_{}", draft.id), "type": "message", "role": "assistant", "status": status,
        "content": content,
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_tool_is_read() {
        let talk = read(&json!({
            "model": "stub-1", "instructions": "be good", "stream": true, "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "Chunk ID: 1\nOutput:\ndone"},
            ],
            "tools": [{"type": "function", "name": "shell", "parameters": {}}, {"type": "web_search"}],
        }));
        assert_eq!(talk.said, [ChatMessage::Person("hello".into()), ChatMessage::Tool("done".into())]);
        let names: Vec<&str> = talk.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["shell", "web_search"]);
    }
}
