//! Opencode's word for what its agents may do without asking. Pure.
//!
//! `GET /agent` lists the rules of each agent as they are in force, whoever wrote them: opencode itself, the variable that we
//! set, a person's `opencode.json`, or whatever else it may read. The last rule that fits decides, and what no rule is about is asked. All
//! of its agents are looked at, not only the one that is chosen: a command may name another one, and its tool `task` starts
//! whichever the model names.

use agent::{Trouble, bounded};
use serde_json::{Map, Value, json};

use super::turn::{NAME_BYTES_MAX, text};

/// The effects of opencode on the world outside the conversation.
const ACTS: [&str; 4] = ["edit", "bash", "webfetch", "websearch"];
/// The questions that it asks by itself.
const DOUBTS: [&str; 2] = ["external_directory", "doom_loop"];
/// The mode in which nothing is changed.
const PLAN: &str = "plan";
/// The files in which opencode writes down a plan. They are all that is changed in its mode `plan`, in the directory or in its home.
const PLANS: &str = "opencode/plans/*.md";

/// The permissions it is started with: about what it asks. In the mode `plan` none of its agents changes files.
pub(super) fn permission(bypasses: bool, mode: Option<&str>) -> String {
    let action = if bypasses { "allow" } else { "ask" };
    let doubts = DOUBTS.into_iter().filter(|_| bypasses);
    let mut permission: Map<_, _> =
        ACTS.into_iter().chain(doubts).map(|what| (what.to_owned(), json!(action))).collect();
    if mode == Some(PLAN) {
        permission.insert("edit".to_owned(), json!({"*": "deny", format!("*{PLANS}"): "allow"}));
    }
    permission.insert("question".to_owned(), json!("allow"));
    Value::Object(permission).to_string()
}

/// The refusal where its list of agents does not show that all of them ask.
pub(super) fn acts_unasked(agents: &Value) -> Option<Trouble> {
    let Some(agents) = agents.as_array() else {
        let words = "opencode did not list its agents, so nobody knows whether they ask before they act";
        return Some(Trouble::transient(words));
    };
    let found = agents.iter().find_map(|agent| Some((agent, first_unasked(agent)?)));
    found.map(|(agent, act)| {
        let name = bounded(text(agent, "/name"), NAME_BYTES_MAX);
        Trouble::refused(format!(
            "opencode's agent {name:?} acts without asking ({act}), as far as its rules say, and any turn can come to it, by a \
             command or by the tool `task`; this agent is not set up for that. Take `permission` and `tools` of that agent \
             out of opencode.json and .opencode in the agent's home, or set `bypass = true`"
        ))
    })
}

/// The first thing that an agent does without asking.
fn first_unasked(agent: &Value) -> Option<&'static str> {
    let Some(rules) = agent["permission"].as_array() else { return Some("it lists no rules") };
    ACTS.into_iter().find(|act| is_unasked(act, rules))
}

/// True if some of it is done without asking. A rule for all of it outdoes those before; one for a part only adds to them.
fn is_unasked(act: &str, rules: &[Value]) -> bool {
    let mut is_unasked = false;
    for rule in rules.iter().filter(|rule| fits(text(rule, "/permission"), act)) {
        let pattern = text(rule, "/pattern");
        match text(rule, "/action") {
            "ask" | "deny" => is_unasked &= pattern != "*",
            "allow" if act == "edit" && pattern.ends_with(PLANS) => {}
            // An action of which we have never heard is no question.
            _ => is_unasked = true,
        }
    }
    is_unasked
}

/// True if a pattern of opencode's, with `*` for anything and `?` for one letter, fits the whole name.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match (rest.next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), None) => fits(rest.as_str(), name),
        (Some('*'), Some(letter)) => fits(rest.as_str(), name) || fits(pattern, &name[letter.len_utf8()..]),
        (Some(wanted), Some(letter)) if wanted == '?' || wanted == letter => {
            fits(rest.as_str(), &name[letter.len_utf8()..])
        }
        (Some(_) | None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Failure;

    fn rule(permission: &str, pattern: &str, action: &str) -> Value {
        json!({"permission": permission, "pattern": pattern, "action": action})
    }

    /// The rules that opencode 1.18.33 lists for `build`, as far as they are about what it does, with these after them.
    fn agent(more: &[Value]) -> Value {
        let mut rules =
            vec![rule("*", "*", "allow"), rule("doom_loop", "*", "ask"), rule("read", "*", "allow")];
        rules.extend(ACTS.map(|act| rule(act, "*", "ask")));
        rules.push(rule("question", "*", "allow"));
        rules.extend_from_slice(more);
        json!({"name": "build", "mode": "primary", "permission": rules})
    }

    #[track_caller]
    fn check(more: &[Value], act: Option<&str>) {
        let trouble = acts_unasked(&json!([agent(&[]), agent(more)]));
        let Some(act) = act else { return assert_eq!(trouble, None) };
        let trouble = trouble.expect("it acts without asking");
        assert_eq!(trouble.failure, Failure::Refused);
        let named = format!("\"build\" acts without asking ({act})");
        assert!(trouble.detail.contains(&named) && trouble.detail.contains("bypass = true"), "{trouble}");
    }

    #[test]
    fn the_last_rule_decides_and_a_rule_for_a_part_is_enough() {
        check(&[], None);
        check(&[rule("bash", "*", "allow")], Some("bash"));
        check(&[rule("bash", "git *", "allow")], Some("bash"));
        check(&[rule("bash", "git *", "allow"), rule("bash", "*", "deny")], None);
        check(&[rule("bash", "*", "allow"), rule("bash", "rm *", "ask")], Some("bash"));
        check(&[rule("*", "*", "allow")], Some("edit"));
        check(&[rule("web*", "*", "allow")], Some("webfetch"));
        check(&[rule("websearc?", "*", "allow")], Some("websearch"));
        check(&[rule("*bash*", "*", "perhaps")], Some("bash"));
        check(
            &[
                rule("basher", "*", "allow"),
                rule("external_directory", "*", "allow"),
                rule("lsp", "*", "allow"),
            ],
            None,
        );
    }

    #[test]
    fn a_plan_may_be_written_down_and_nothing_else() {
        check(&[rule("edit", ".opencode/plans/*.md", "allow")], None);
        check(&[rule("edit", "srv/home/.local/share/opencode/plans/*.md", "allow")], None);
        check(&[rule("bash", ".opencode/plans/*.md", "allow")], Some("bash"));
        check(&[rule("edit", ".opencode/plans/*", "allow")], Some("edit"));
    }

    #[test]
    fn whoever_says_nothing_about_its_rules_is_no_agent_that_asks() {
        for silent in [json!([{"name": "build"}]), json!([{"name": "build", "permission": {"bash": "ask"}}])]
        {
            let trouble = acts_unasked(&silent).expect("nothing shows that it asks");
            assert!(
                trouble.failure == Failure::Refused && trouble.detail.contains("lists no rules"),
                "{trouble}"
            );
        }
        assert_eq!(acts_unasked(&Value::Null).map(|trouble| trouble.failure), Some(Failure::Transient));
    }

    #[test]
    fn it_asks_before_it_acts_unless_it_bypasses_and_plans_change_nothing() {
        let said = |bypasses, mode| serde_json::from_str::<Value>(&permission(bypasses, mode)).unwrap();
        let asks =
            json!({"edit": "ask", "bash": "ask", "webfetch": "ask", "websearch": "ask", "question": "allow"});
        assert_eq!(said(false, None), asks);
        assert_eq!(said(false, Some("build")), asks);
        let plans = json!({"*": "deny", "*opencode/plans/*.md": "allow"});
        assert_eq!(said(false, Some("plan"))["edit"], plans);
        assert_eq!(said(true, Some("plan"))["edit"], plans);
        assert_eq!(said(true, None)["edit"], "allow");
        assert_eq!(said(true, None)["external_directory"], "allow");
        assert_eq!(said(true, None)["question"], "allow");
    }
}
