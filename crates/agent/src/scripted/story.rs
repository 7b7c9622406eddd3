//! The directives by which the scripted agent shows what agents show beside their answers: tools, reasoning, a plan, files.
//!
//! What they take is separated by `|`; in it `\\n` is the end of a line.

use super::ScriptStep;
use crate::{AgentEvent, CHOICES_MAX, PlanStep, Progress};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoryDirective {
    /// `!tool NAME | INPUT | PRINTED | PRINTED`, or `!tool-fails` with the same.
    Tool { tool: String, input: String, printed: Vec<String>, failed: bool },
    /// `!think TEXT`
    Think { text: String },
    /// `!plan x DONE | > ACTIVE | WAITING`
    Plan { steps: Vec<PlanStep> },
    /// `!edit FILE | CONTENT`, or `!remove FILE`.
    Change { path: String, content: Option<String> },
}

impl StoryDirective {
    pub(super) fn understand(name: &str, rest: &str) -> Option<Self> {
        let mut parts = rest.split('|').map(|part| part.trim().replace("\\n", "\n"));
        let first = parts.next().filter(|first| !first.is_empty())?;
        Some(match name {
            "!tool" | "!tool-fails" => {
                let (input, failed) = (parts.next().unwrap_or_default(), name == "!tool-fails");
                Self::Tool { tool: first, input, printed: parts.collect(), failed }
            }
            "!think" => Self::Think { text: rest.replace("\\n", "\n") },
            "!plan" => {
                Self::Plan { steps: [first].into_iter().chain(parts).take(CHOICES_MAX).map(step).collect() }
            }
            "!edit" => {
                let content = rest.split_once('|')?.1.trim().replace("\\n", "\n");
                Self::Change { path: first, content: Some(content) }
            }
            "!remove" => Self::Change { path: rest.to_owned(), content: None },
            _ => return None,
        })
    }

    /// The steps of it; `call` is a number that no other tool of this turn has.
    pub(super) fn steps(self, call: u64) -> Vec<ScriptStep> {
        match self {
            Self::Think { text } => vec![ScriptStep::Show(AgentEvent::Reasoning { text })],
            Self::Plan { steps } => vec![ScriptStep::Show(AgentEvent::Plan { steps })],
            Self::Change { path, content } => vec![ScriptStep::Change { path, content }],
            Self::Tool { tool, input, printed, failed } => {
                let call = format!("tool{call}");
                let called = AgentEvent::ToolCall { call: call.clone(), tool, input };
                let piece =
                    |output: &String| AgentEvent::ToolProgress { call: call.clone(), output: output.clone() };
                // What is printed at once is told with the result alone.
                let pieces = printed.iter().filter(|_| printed.len() > 1).map(piece);
                let result = AgentEvent::ToolResult { call: call.clone(), output: printed.concat(), failed };
                [called].into_iter().chain(pieces).chain([result]).map(ScriptStep::Show).collect()
            }
        }
    }
}

fn step(words: String) -> PlanStep {
    let marked =
        |mark: &str, progress| Some(PlanStep { text: words.strip_prefix(mark)?.trim().to_owned(), progress });
    let seen = marked("x ", Progress::Done).or_else(|| marked("> ", Progress::Active));
    seen.unwrap_or(PlanStep { text: words, progress: Progress::Waiting })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(line: &str) -> Vec<ScriptStep> {
        let (name, rest) = line.split_once(' ').unwrap();
        StoryDirective::understand(name, rest).map(|directive| directive.steps(7)).unwrap_or_default()
    }

    fn tool(printed: &[&str], output: &str, failed: bool) -> Vec<ScriptStep> {
        let call = || "tool7".to_owned();
        let called = AgentEvent::ToolCall { call: call(), tool: "build".to_owned(), input: "all".to_owned() };
        let piece = |output: &&str| AgentEvent::ToolProgress { call: call(), output: (*output).to_owned() };
        let result = AgentEvent::ToolResult { call: call(), output: output.to_owned(), failed };
        [called].into_iter().chain(printed.iter().map(piece)).chain([result]).map(ScriptStep::Show).collect()
    }

    #[test]
    fn a_tool_prints_at_once_or_piece_by_piece() {
        assert_eq!(steps("!tool build | all | done"), tool(&[], "done", false));
        assert_eq!(steps("!tool build | all | one\\n | two"), tool(&["one\n", "two"], "one\ntwo", false));
        assert_eq!(steps("!tool-fails build | all | no"), tool(&[], "no", true));
        assert_eq!(steps("!tool build | all"), tool(&[], "", false));
        assert_eq!(steps("!tool | all"), []);
    }

    #[test]
    fn it_thinks_and_plans_aloud() {
        let text = "first this\nthen | that".to_owned();
        let thought = ScriptStep::Show(AgentEvent::Reasoning { text });
        assert_eq!(steps("!think first this\\nthen | that"), [thought]);
        let step = |text: &str, progress| PlanStep { text: text.to_owned(), progress };
        let plan = vec![
            step("look", Progress::Done),
            step("mend", Progress::Active),
            step("test", Progress::Waiting),
        ];
        assert_eq!(
            steps("!plan x look | > mend | test"),
            [ScriptStep::Show(AgentEvent::Plan { steps: plan })]
        );
    }

    #[test]
    fn a_file_is_written_or_removed() {
        let change = |path: &str, content: Option<&str>| ScriptStep::Change {
            path: path.to_owned(),
            content: content.map(str::to_owned),
        };
        assert_eq!(steps("!edit a/b.txt | one | two\\n"), [change("a/b.txt", Some("one | two\n"))]);
        assert_eq!(steps("!remove a/b.txt"), [change("a/b.txt", None)]);
        assert_eq!(steps("!edit a/b.txt"), []);
    }
}
