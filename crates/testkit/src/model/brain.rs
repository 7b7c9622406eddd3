//! The answer: a pure function of the request and of how often it was asked before.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::chat_request::{ChatMessage, ChatRequest, OfferedTool};

/// An answer before it is put into a protocol's form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelAnswer {
    /// Silence before the first byte.
    pub(super) delay: Duration,
    pub(super) say: ReplyContent,
    pub(super) flaw: Fault,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReplyContent {
    /// Pieces of text with a pause between them.
    Text {
        pieces: Vec<String>,
        pause: Duration,
    },
    Call {
        tool: String,
        arguments: Value,
    },
    /// Nothing but a status.
    Status(u16),
}

/// A fault on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The line is cut in the middle.
    Cut,
    /// The middle is not JSON.
    Garbled,
}

impl ModelAnswer {
    pub(super) fn status(status: u16) -> Self {
        Self { delay: Duration::ZERO, say: ReplyContent::Status(status), flaw: Fault::None }
    }

    fn text(text: String) -> Self {
        // Two pieces, so that even a short answer is streamed.
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let (first, second) = text.split_at(middle);
        let pieces = [first, second].into_iter().filter(|piece| !piece.is_empty()).map(str::to_owned);
        Self::pieces(pieces.collect(), Duration::ZERO)
    }

    fn pieces(pieces: Vec<String>, pause: Duration) -> Self {
        Self { delay: Duration::ZERO, say: ReplyContent::Text { pieces, pause }, flaw: Fault::None }
    }

    fn call(tool: &str, arguments: Value) -> Self {
        let say = ReplyContent::Call { tool: tool.to_owned(), arguments };
        Self { delay: Duration::ZERO, say, flaw: Fault::None }
    }
}

/// The words of `WORDS` that come in one piece: a kilobyte or so.
const WORDS_IN_PIECE: usize = 100;

/// Requests an agent makes for itself offer no tools and have words like these in what the agent says itself.
const SIDE_WORDS: &[&str] = &["title", "summar", "topic", "concise description", "words or less", "memory"];

/// True if this is a request that is no part of a turn.
pub(super) fn is_side_call(talk: &ChatRequest) -> bool {
    let said = talk.system.to_lowercase();
    talk.tools.is_empty() && SIDE_WORDS.iter().any(|word| said.contains(word))
}

/// The answer to a request that is no part of a turn.
pub(super) fn answer_side_call() -> ModelAnswer {
    ModelAnswer::text("A stubborn title".to_owned())
}

/// The answer to a turn. `before` says how often this very request was answered with a fault before.
pub(super) fn answer(talk: &ChatRequest, before: u32) -> ModelAnswer {
    if let Some(ChatMessage::Tool(result)) = talk.said.last() {
        let first = result.lines().find(|line| !line.trim().is_empty() && !is_tag(line)).unwrap_or("nothing");
        return ModelAnswer::text(format!("TOOL SAID: {}", first.trim()));
    }
    let line = last_line(talk);
    directive(talk, line, before).unwrap_or_else(|| ModelAnswer::text(echo(talk, line)))
}

/// True if the line is nothing but what an agent wraps around a result.
fn is_tag(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('<') && line.ends_with('>') && line.matches('<').count() == 1
}

/// The line that decides about the answer.
fn last_line(talk: &ChatRequest) -> &str {
    let line = talk.last_text().lines().next_back().unwrap_or_default().trim();
    // One agent wraps an argument with a space in quotes.
    line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap_or(line)
}

fn echo(talk: &ChatRequest, line: &str) -> String {
    format!("ECHO: {line} [turn={}]", talk.people().count())
}

fn directive(talk: &ChatRequest, line: &str, before: u32) -> Option<ModelAnswer> {
    let (name, rest) = line.split_once(':').unwrap_or((line, ""));
    match name {
        "RECALL" => Some(ModelAnswer::text(recall(talk))),
        "TOOL" => Some(tool(talk, rest)),
        "SLEEP" => {
            let delay = Duration::try_from_secs_f64(rest.parse().ok()?).ok()?;
            Some(ModelAnswer { delay, ..ModelAnswer::text(echo(talk, line)) })
        }
        "CHUNKS" => {
            let (count, pause_ms) = rest.split_once(':')?;
            let pieces = spaced((1..=count.parse::<u32>().ok()?).map(|number| format!("chunk {number}")));
            Some(ModelAnswer::pieces(pieces, Duration::from_millis(pause_ms.parse().ok()?)))
        }
        "WORDS" => {
            let words = spaced((1..=rest.parse::<u32>().ok()?).map(|number| format!("word{number}")));
            let pieces = words.chunks(WORDS_IN_PIECE).map(<[String]>::concat).collect();
            Some(ModelAnswer::pieces(pieces, Duration::ZERO))
        }
        "ERR" => {
            let (status, times) = rest.split_once(':').unwrap_or((rest, ""));
            let times = times.parse().unwrap_or(u32::MAX);
            let status = status.parse().ok()?;
            Some(if before < times {
                ModelAnswer::status(status)
            } else {
                ModelAnswer::text(echo(talk, line))
            })
        }
        "DROP" => Some(ModelAnswer { flaw: Fault::Cut, ..ModelAnswer::text(echo(talk, line)) }),
        "MALFORMED" => Some(ModelAnswer { flaw: Fault::Garbled, ..ModelAnswer::text(echo(talk, line)) }),
        _ => None,
    }
}

/// With a space between each two, and none at the ends: some agents cut those off.
fn spaced(words: impl Iterator<Item = String>) -> Vec<String> {
    words.enumerate().map(|(at, word)| if at == 0 { word } else { format!(" {word}") }).collect()
}

/// The code words of everything a person said before the last thing.
fn recall(talk: &ChatRequest) -> String {
    let turns = talk.people().count();
    let earlier = talk.people().take(turns - 1).chain(before_the_last_line(talk));
    let words: Vec<&str> = earlier.flat_map(code_words).collect();
    let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    format!("RECALL: {words} [turn={turns}]")
}

/// A failed turn's message that was glued to the last one was said earlier, too.
fn before_the_last_line(talk: &ChatRequest) -> Option<&str> {
    talk.last_text().rsplit_once('\n').map(|(before, _)| before)
}

fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split("CODE:").skip(1).filter_map(|after| {
        let end = after.find(|letter: char| !(letter.is_alphanumeric() || letter == '-'));
        Some(&after[..end.unwrap_or(after.len())]).filter(|word| !word.is_empty())
    })
}

/// Names that agents have for the tool that runs a command. Compared without case.
const SHELLS: &[&str] = &[
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "developer__shell",
    "execute",
    "run_command",
];

/// Names that agents have for the tool that writes a file. Compared without case.
const WRITERS: &[&str] =
    &["write", "write_file", "writefile", "developer__write", "text_editor", "developer__text_editor"];

fn tool(talk: &ChatRequest, rest: &str) -> ModelAnswer {
    let (kind, rest) = rest.split_once(':').unwrap_or((rest, ""));
    match kind {
        "bash" => shell(talk, rest),
        "write" => {
            let (path, text) = rest.split_once(':').unwrap_or((rest, ""));
            match offered(talk, WRITERS) {
                Some(tool) => ModelAnswer::call(&tool.name, write_arguments(&tool.schema, path, text)),
                None => shell(talk, &format!("printf %s {} > {}", quoted(text), quoted(path))),
            }
        }
        "raw" => {
            let (name, arguments) = rest.split_once(':').unwrap_or((rest, "{}"));
            match serde_json::from_str(arguments) {
                Ok(arguments) => ModelAnswer::call(name, arguments),
                Err(why) => ModelAnswer::text(format!("BAD ARGUMENTS: {why}")),
            }
        }
        _ => ModelAnswer::text(format!("UNKNOWN KIND OF TOOL: {kind}")),
    }
}

fn shell(talk: &ChatRequest, command: &str) -> ModelAnswer {
    match offered(talk, SHELLS) {
        Some(tool) => ModelAnswer::call(&tool.name, shell_arguments(&tool.schema, command)),
        None => ModelAnswer::text(format!("NO SHELL AMONG: {}", names(talk))),
    }
}

fn offered<'a>(talk: &'a ChatRequest, names: &[&str]) -> Option<&'a OfferedTool> {
    names.iter().find_map(|name| talk.tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)))
}

fn names(talk: &ChatRequest) -> String {
    let names: Vec<&str> = talk.tools.iter().map(|tool| tool.name.as_str()).collect();
    names.join(", ")
}

fn shell_arguments(schema: &Value, command: &str) -> Value {
    let field = if schema["properties"]["cmd"].is_object() { "cmd" } else { "command" };
    let command = match schema["properties"][field]["type"].as_str() {
        Some("array") => json!(["bash", "-c", command]),
        _ => json!(command),
    };
    complete(schema, [(field, command)])
}

fn write_arguments(schema: &Value, path: &str, text: &str) -> Value {
    let known = |names: &[&'static str]| {
        names.iter().copied().find(|name| schema["properties"][*name].is_object()).unwrap_or(names[0])
    };
    let path_field = known(&["file_path", "filePath", "path"]);
    let text_field = known(&["content", "file_text", "contents", "text"]);
    // An editor with several commands has one that writes.
    let command = schema["properties"]["command"].is_object().then_some(("command", json!("write")));
    complete(schema, [(path_field, json!(path)), (text_field, json!(text))].into_iter().chain(command))
}

/// Arguments with something in every other field that must be there.
fn complete<'a>(schema: &Value, given: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let mut arguments: Map<String, Value> =
        given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let filler = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(10_000),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("as the stub was told"),
        };
        arguments.entry(name).or_insert(filler);
    }
    Value::Object(arguments)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> ChatRequest {
        let mut talk = ChatRequest::default();
        for text in texts {
            talk.person(&[text]);
            talk.said.push(ChatMessage::Model);
        }
        talk.said.pop();
        talk
    }

    #[track_caller]
    fn check(texts: &[&str], want: &str) {
        let answer = answer(&said(texts), 0);
        let ReplyContent::Text { pieces, .. } = answer.say else { panic!("{answer:?}") };
        assert_eq!(pieces.concat(), want);
    }

    #[test]
    fn the_last_line_is_echoed_with_the_number_of_turns() {
        check(&["hello"], "ECHO: hello [turn=1]");
        check(&["one", "two\nthree"], "ECHO: three [turn=2]");
        check(&["\"two words\""], "ECHO: two words [turn=1]");
        check(&[], "ECHO:  [turn=0]");
    }

    #[test]
    fn code_words_of_earlier_turns_are_recalled() {
        check(&["RECALL"], "RECALL: nothing [turn=1]");
        check(
            &["keep CODE:maple-1, please", "and CODE:oak", "not CODE:", "RECALL"],
            "RECALL: maple-1, oak [turn=4]",
        );
        check(&["CODE:elm\nERR:401\nRECALL"], "RECALL: elm [turn=1]");
    }

    #[test]
    fn words_come_in_pieces_and_in_order() {
        check(&["WORDS:3"], "word1 word2 word3");
        check(&["CHUNKS:2:0"], "chunk 1 chunk 2");
        let ReplyContent::Text { pieces, .. } = answer(&said(&["WORDS:250"]), 0).say else { panic!("words") };
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.concat().split(' ').count(), 250);
    }

    #[test]
    fn a_fault_stops_after_so_many_times() {
        let talk = said(&["ERR:429:2"]);
        assert_eq!(answer(&talk, 0).say, ReplyContent::Status(429));
        assert_eq!(answer(&talk, 1).say, ReplyContent::Status(429));
        assert!(matches!(answer(&talk, 2).say, ReplyContent::Text { .. }));
        assert_eq!(answer(&said(&["ERR:401"]), 1_000).say, ReplyContent::Status(401));
    }

    #[test]
    fn a_tool_is_called_by_the_name_and_the_fields_it_has() {
        let mut talk = said(&["TOOL:bash:echo a:b"]);
        let schema = json!({"properties": {"cmd": {"type": "string"}, "why": {"type": "string"}}, "required": ["cmd", "why"]});
        talk.tools.push(OfferedTool { name: "exec_command".into(), schema });
        let want =
            ModelAnswer::call("exec_command", json!({"cmd": "echo a:b", "why": "as the stub was told"}));
        assert_eq!(answer(&talk, 0), want);

        let mut talk = said(&["TOOL:write:/srv/a:it's"]);
        let schema = json!({"properties": {"command": {"type": "array"}}});
        talk.tools.push(OfferedTool { name: "shell".into(), schema });
        let command = r"printf %s 'it'\''s' > '/srv/a'";
        assert_eq!(answer(&talk, 0), ModelAnswer::call("shell", json!({"command": ["bash", "-c", command]})));

        talk.tools.push(OfferedTool {
            name: "Write".into(),
            schema: json!({"properties": {"file_path": {}, "content": {}}}),
        });
        let want = ModelAnswer::call("Write", json!({"file_path": "/srv/a", "content": "it's"}));
        assert_eq!(answer(&talk, 0), want);
        check(&["TOOL:bash:true"], "NO SHELL AMONG: ");
    }

    #[test]
    fn a_tools_result_ends_the_turn() {
        let mut talk = said(&["TOOL:bash:true"]);
        talk.said.push(ChatMessage::Tool("\n done \nand more".into()));
        assert_eq!(answer(&talk, 0), ModelAnswer::text("TOOL SAID: done".into()));
        talk.said.push(ChatMessage::Tool("<untrusted>\n<b>done</b>\n</untrusted>".into()));
        assert_eq!(answer(&talk, 0), ModelAnswer::text("TOOL SAID: <b>done</b>".into()));
    }

    #[test]
    fn a_title_is_no_turn() {
        let mut talk = said(&["ERR:401"]);
        talk.system = "You are a title generator.".into();
        assert!(is_side_call(&talk));
        talk.tools.push(OfferedTool { name: "bash".into(), schema: Value::Null });
        assert!(!is_side_call(&talk));
    }
}
