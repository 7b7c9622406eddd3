//! The ways of Gemini, Qwen, Kimi and codex-acp, in the words that they were seen to say.

use super::*;

/// A turn of that agent, whose prompt has the id 3.
fn turn(agent: &str) -> Talk {
    let mut talk = Talk::ready(agent, "s", 3);
    talk.does(|protocol, out| {
        protocol.hand(
            &Message { id: MessageId::from_bits(1), text: "x".to_owned(), attachments: Vec::new() },
            out,
        )
    });
    talk
}

fn says(talk: &mut Talk, text: &str) {
    talk.hears(&update(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    ));
}

fn ends(talk: &mut Talk, reason: &str) {
    talk.hears(&json!({"id": 3, "result": {"stopReason": reason}}));
}

#[test]
fn a_no_that_ends_the_turn_is_no_failure_and_a_yes_that_does_is_one() {
    for (answer, is_finished) in
        [(QuestionAnswer::Deny { reason: String::new() }, true), (QuestionAnswer::Allow, false)]
    {
        let mut talk = turn("codex-acp");
        talk.hears(&question(7, &["allow_once", "allow_always", "reject_once"]));
        talk.does(|protocol, out| protocol.answer("7", &answer, out));
        ends(&mut talk, "cancelled");
        assert_eq!(talk.finished() == 1, is_finished, "{answer:?}: {:?}", talk.events);
    }
}

#[test]
fn a_no_in_one_turn_excuses_nothing_in_the_next() {
    let mut talk = turn("codex-acp");
    talk.hears(&question(7, &["allow_once", "reject_once"]));
    talk.does(|protocol, out| protocol.answer("7", &QuestionAnswer::Deny { reason: String::new() }, out));
    ends(&mut talk, "cancelled");
    talk.does(|protocol, out| {
        protocol.hand(
            &Message { id: MessageId::from_bits(2), text: "y".to_owned(), attachments: Vec::new() },
            out,
        )
    });
    talk.hears(&json!({"id": 4, "result": {"stopReason": "cancelled"}}));
    assert_eq!(talk.failed().failure, Failure::Transient);
}

#[test]
fn kimi_has_failed_where_it_ends_without_a_word() {
    let mut silent = turn("kimi");
    ends(&mut silent, "end_turn");
    assert_eq!(silent.failed().failure, Failure::Transient);
    let mut after_a_tool = turn("kimi");
    says(&mut after_a_tool, "I look.");
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1:a", "title": "Bash", "kind": "execute", "status": "completed"});
    after_a_tool.hears(&update(call));
    ends(&mut after_a_tool, "end_turn");
    assert_eq!(after_a_tool.failed().failure, Failure::Transient);
    let mut spoken = turn("kimi");
    says(&mut spoken, "Done.");
    ends(&mut spoken, "end_turn");
    assert_eq!(spoken.finished(), 1);
    // Others may have nothing to say.
    let mut other = turn("qwen");
    ends(&mut other, "end_turn");
    assert_eq!(other.finished(), 1);
}

#[test]
fn a_request_of_an_agents_own_is_declined_and_nobody_is_bothered() {
    let mut talk = turn("qwen");
    let before = talk.events.len();
    talk.hears(&json!({"id": 9, "method": "craft/drainMidTurnQueue", "params": {"sessionId": "s"}}));
    assert_eq!(talk.sent.last().unwrap()["error"]["code"], -32601);
    assert_eq!(talk.events.len(), before);
}

#[test]
fn the_output_of_a_terminal_is_the_tools() {
    let mut talk = turn("codex-acp");
    let part = |status: &str, more: &str| {
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status,
            "_meta": {"terminal_output_delta": {"data": more, "terminal_id": "c"}}}))
    };
    talk.hears(&update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "exec_command", "kind": "execute",
        "status": "in_progress", "rawInput": {"command": "ls"}, "content": [{"type": "terminal", "terminalId": "c"}]})));
    talk.hears(&part("in_progress", "one\n"));
    talk.hears(&part("completed", "two\n"));
    let result = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { output, failed: false, .. } if output == "one\ntwo\n");
    assert!(talk.events.iter().any(result), "{:?}", talk.events);
    let progress = |event: &&AgentEvent| matches!(event, AgentEvent::ToolProgress { .. });
    assert_eq!(talk.events.iter().filter(progress).count(), 2);
}

#[test]
fn figures_are_read_where_each_agent_puts_them() {
    let mut gemini = turn("gemini");
    gemini.hears(&json!({"id": 3, "result": {"stopReason": "end_turn",
        "_meta": {"quota": {"token_count": {"input_tokens": 11, "output_tokens": 6}}}}}));
    assert_eq!((gemini.usage().input_tokens, gemini.usage().output_tokens), (11, 6));
    let mut qwen = turn("qwen");
    for _ in 0..2 {
        qwen.hears(&update(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""},
            "_meta": {"usage": {"inputTokens": 20, "outputTokens": 5, "totalTokens": 25}}}),
        ));
    }
    ends(&mut qwen, "end_turn");
    assert_eq!((qwen.usage().input_tokens, qwen.usage().output_tokens), (40, 10));
}
