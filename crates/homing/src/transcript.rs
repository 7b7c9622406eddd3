//! A conversation to be read: who said what and when, with each tool on one line.
//!
//! Made of what `export` takes along, so it has the turns that are over; what is not is told by whoever shows it. In two forms: for a
//! terminal, and as Markdown. In Markdown people's words are quoted, so that nothing in them looks like a part of the page.

use api::{ExportHeader, ExportLine, ExportTurn, Outcome, Part, Story};

use crate::exit::{CliError, Exit};
use crate::screen::{Screen, TextStyle, cut, tame};
use crate::{attached, describe, time};

/// The length of a tool's line.
const TOOL_SHOWN: usize = 120;

/// A conversation, as an export has it.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) header: ExportHeader,
    pub(crate) turns: Vec<ExportTurn>,
}

/// One thing that an agent said or did in a turn, in the order of the story.
#[derive(Debug, PartialEq, Eq)]
enum TurnPiece {
    /// Words.
    Words(String),
    /// A tool, on one line.
    Tool(String),
    /// Something people should read.
    Notice(String),
}

impl Transcript {
    /// Reads the lines of an export.
    pub(crate) fn read(export: &[u8]) -> Result<Self, CliError> {
        let broken = || {
            CliError::new(Exit::Failed, "the server's answer is no conversation that this program can read")
                .hint(
                    "`homing doctor` says whether the server is of another version; if it is not, try again",
                )
        };
        let text = std::str::from_utf8(export).map_err(|_| broken())?;
        let (mut header, mut turns) = (None, Vec::new());
        for line in text.lines() {
            match serde_json::from_str(line).map_err(|_| broken())? {
                ExportLine::Header(read) => header = Some(*read),
                ExportLine::Turn(turn) => turns.push(*turn),
                ExportLine::End(_) => {}
            }
        }
        Ok(Self { header: header.ok_or_else(broken)?, turns })
    }

    /// For a terminal, or a pipe: names and times on lines of their own, what was said below them.
    pub(crate) fn show(&self, screen: Screen) -> std::io::Result<()> {
        if self.header.left_out.turns > 0 {
            screen.line(format!("({} older turns are left out)\n", self.header.left_out.turns))?;
        }
        self.turns.iter().try_for_each(|turn| show_turn(turn, screen))
    }

    /// As a page of Markdown.
    pub(crate) fn markdown(&self) -> String {
        let header = &self.header;
        let title = header.title.as_deref().unwrap_or(&header.session);
        let model = header.model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
        let mut page = format!("# {}\n\n", one_line(title));
        page.push_str(&format!("Session `{}` with {}{model}.\n", header.session, header.agent));
        if header.left_out.turns > 0 {
            page.push_str(&format!("\n*{} older turns are left out.*\n", header.left_out.turns));
        }
        for turn in &self.turns {
            page.push_str(&markdown_turn(turn));
        }
        page
    }
}

fn show_turn(turn: &ExportTurn, screen: Screen) -> std::io::Result<()> {
    let head = |who: &str, at| {
        format!(
            "{}  {}",
            screen.out(TextStyle::Bold, &tame(who)),
            screen.out(TextStyle::Dim, &time::full(at))
        )
    };
    let body = |text: &str| {
        tame(text.trim_start_matches('\n').trim_end())
            .lines()
            .map(|line| format!("  {line}\n"))
            .collect::<String>()
    };
    // Pieces without words would only be gaps.
    let is_told = |piece: &TurnPiece| !matches!(piece, TurnPiece::Words(text) if text.trim().is_empty());
    for said in &turn.said {
        screen.line(head(&said.by, said.at))?;
        screen.hanging(2, &body(&words(&said.parts)))?;
    }
    screen.line(head(agent_of(turn), turn.ended_at))?;
    let mut after_tool = false;
    for piece in pieces(turn).into_iter().filter(is_told) {
        let is_tool = matches!(piece, TurnPiece::Tool(_));
        if std::mem::replace(&mut after_tool, is_tool) && !is_tool {
            screen.line("")?;
        }
        match piece {
            TurnPiece::Words(text) => screen.hanging(2, &body(&text))?,
            TurnPiece::Tool(line) => {
                screen.hanging(4, &format!("  {}", screen.out(TextStyle::Dim, &format!("· {line}"))))?;
            }
            TurnPiece::Notice(text) => screen.hanging(2, &body(&format!("({})", text.trim_end())))?,
        }
    }
    if after_tool {
        screen.line("")?;
    }
    if turn.outcome != Outcome::Answered {
        let end = format!("turn {} {}", turn.turn, describe::outcome(turn.outcome));
        screen.line(format!("  {}\n", screen.out(TextStyle::Bad, &end)))?;
    }
    Ok(())
}

fn markdown_turn(turn: &ExportTurn) -> String {
    let mut page = format!("\n## Turn {}\n", turn.turn);
    for said in &turn.said {
        page.push_str(&format!("\n**{}**, {}:\n\n", one_line(&said.by), time::full(said.at)));
        let quoted = words(&said.parts);
        let quoted = quoted.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n");
        page.extend(quoted);
    }
    page.push_str(&format!("\n**{}**, {}:\n", agent_of(turn), time::full(turn.ended_at)));
    let mut in_list = false;
    for piece in pieces(turn) {
        let is_tool = matches!(piece, TurnPiece::Tool(_));
        if !(is_tool && in_list) {
            page.push('\n');
        }
        in_list = is_tool;
        match piece {
            TurnPiece::Words(text) => {
                page.push_str(&format!("{}\n", text.trim_start_matches('\n').trim_end()));
            }
            TurnPiece::Tool(line) => page.push_str(&format!("- `{}`\n", line.replace('`', "'"))),
            TurnPiece::Notice(text) => page.push_str(&format!("*{}*\n", one_line(&text))),
        }
    }
    if turn.outcome != Outcome::Answered {
        page.push_str(&format!("\n*The turn {}.*\n", describe::outcome(turn.outcome)));
    }
    page
}

fn agent_of(turn: &ExportTurn) -> &str {
    if turn.agent.is_empty() { "the agent" } else { &turn.agent }
}

fn words(parts: &[Part]) -> String {
    let words = parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { .. } | Part::File { .. } => format!("[{}]", attached::named(part).unwrap_or_default()),
    });
    let words = words.collect::<Vec<_>>().join("\n");
    if words.is_empty() { "(forgotten)".to_owned() } else { words }
}

fn one_line(text: &str) -> String {
    cut(text.trim(), usize::MAX)
}

/// The things that people read of a turn: words put together again, and each tool once.
fn pieces(turn: &ExportTurn) -> Vec<TurnPiece> {
    let failed = |wanted: &str| {
        turn.story
            .iter()
            .any(|told| matches!(&told.story, Story::ToolResult { call, failed: true, .. } if call == wanted))
    };
    let (mut pieces, mut last_part): (Vec<TurnPiece>, Option<u32>) = (Vec::new(), None);
    for told in &turn.story {
        let piece = match &told.story {
            Story::Text { part, text, .. } => {
                if let (true, Some(TurnPiece::Words(before))) = (last_part == Some(*part), pieces.last_mut())
                {
                    before.push_str(text);
                    continue;
                }
                last_part = Some(*part);
                TurnPiece::Words(text.clone())
            }
            Story::ToolCall { call, tool, input } => {
                let failed = if failed(call) { " (failed)" } else { "" };
                TurnPiece::Tool(cut(&format!("{tool}{failed}: {input}"), TOOL_SHOWN))
            }
            // Nothing to tell.
            Story::Changes { files, moves, .. } if files.is_empty() && moves.is_empty() => continue,
            story @ (Story::FileChanged { .. } | Story::Changes { .. }) => {
                TurnPiece::Tool(cut(&describe::story(story), TOOL_SHOWN))
            }
            Story::Notice { text } => TurnPiece::Notice(text.clone()),
            _ => continue,
        };
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{At, ExportStory, ExportWords};

    fn turn(story: Vec<Story>) -> ExportTurn {
        let at = At(0);
        ExportTurn {
            turn: 1,
            agent: "claude".to_owned(),
            began_at: at,
            ended_at: at,
            said: vec![ExportWords {
                by: "ann".to_owned(),
                at,
                parts: vec![Part::Text { text: "mend it\n# not a heading".to_owned() }],
            }],
            story: story.into_iter().map(|story| ExportStory { at, story }).collect(),
            outcome: Outcome::Answered,
            failure: None,
        }
    }

    #[test]
    fn words_are_put_together_and_each_tool_is_one_line() {
        let text = |part, text: &str| Story::Text { part, offset: 0, text: text.to_owned() };
        let call = |call: &str, input: &str| Story::ToolCall {
            call: call.to_owned(),
            tool: "Bash".to_owned(),
            input: input.to_owned(),
        };
        let failed = Story::ToolResult { call: "b".to_owned(), output: "no".to_owned(), failed: true };
        let story = vec![
            text(1, "one "),
            text(1, "two"),
            call("a", "ls\n-la"),
            call("b", "rm"),
            failed,
            text(2, "done"),
        ];
        let page = markdown_turn(&turn(story));
        assert!(page.contains("\none two\n"), "{page}");
        assert!(page.contains("- `Bash: ls -la`\n- `Bash (failed): rm`\n\ndone\n"), "{page}");
        assert!(page.contains("> mend it\n> # not a heading\n"), "people's words are quoted: {page}");
    }
}
