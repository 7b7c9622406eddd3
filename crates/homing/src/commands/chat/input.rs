//! Where a chat's words come from: keys at a terminal that can be drawn on, else lines.

use std::io::IsTerminal;

use anyhow::Result;

use crate::keyboard::{Interrupts, TypedMessages};
use crate::line_editor::{self, LineEditor, Typed};
use crate::screen::{Screen, TextStyle};

const PROMPT: &str = "> ";

/// The keyboard, a file or a pipe.
pub(super) enum ChatInput {
    /// Somebody types at a terminal.
    Editor(Box<LineEditor>),
    /// Whole lines.
    Lines { typed: TypedMessages, interrupts: Interrupts },
}

impl ChatInput {
    /// Begins to hear, and answers the screen to write to from now on.
    pub(super) fn begin(screen: Screen) -> Result<(Self, Screen)> {
        if line_editor::is_possible(screen) {
            let (screen, area) = screen.with_area();
            return Ok((Self::Editor(Box::new(LineEditor::begin(area, PROMPT)?)), screen));
        }
        Ok((Self::Lines { typed: TypedMessages::start(), interrupts: Interrupts::listen()? }, screen))
    }

    pub(super) fn has_editor(&self) -> bool {
        matches!(self, Self::Editor(_))
    }

    /// True if a person types; else it is a file or a pipe.
    pub(super) fn is_by_hand(&self) -> bool {
        match self {
            Self::Editor(_) => true,
            Self::Lines { typed, .. } => typed.by_hand,
        }
    }

    /// The next thing that is typed. May be cancelled and called again.
    pub(super) async fn next(&mut self) -> Result<Typed> {
        match self {
            Self::Editor(editor) => editor.next().await,
            Self::Lines { typed, interrupts } => Ok(tokio::select! {
                typed = typed.next() => typed.map_or(Typed::Leave, Typed::Said),
                () = interrupts.next() => Typed::Interrupt,
            }),
        }
    }

    /// The same while a turn runs: the next line of a file waits for its end.
    pub(super) async fn next_in_turn(&mut self) -> Result<Typed> {
        match self {
            Self::Lines { typed, interrupts } if !typed.by_hand => {
                interrupts.next().await;
                Ok(Typed::Interrupt)
            }
            _ => self.next().await,
        }
    }

    /// Says that something can be typed, where nothing else does.
    pub(super) fn prompt(&self, screen: Screen) -> Result<()> {
        if !self.has_editor() && self.is_by_hand() && screen.out_is_terminal && !screen.json {
            screen.piece(PROMPT)?;
        }
        Ok(())
    }

    /// Leaves what was typed to be read above the prompt. Whoever types lines sees them anyway.
    pub(super) fn echo(&self, text: &str, screen: Screen) {
        if self.has_editor() {
            let lines = text.replace('\n', "\n  ").replace('\t', "    ");
            screen.say(screen.err(TextStyle::Bold, &format!("{PROMPT}{lines}")));
        }
    }

    pub(super) fn complete_with(&mut self, lines: Vec<String>) {
        if let Self::Editor(editor) = self {
            editor.complete_with(lines);
        }
    }

    /// No question is open any more.
    pub(super) fn ask_nothing(&mut self) -> Result<()> {
        match self {
            Self::Editor(editor) => editor.ask_nothing(PROMPT),
            Self::Lines { .. } => Ok(()),
        }
    }

    /// Nothing more will be typed: the last words stand on lines of their own.
    pub(super) fn close(&mut self, screen: Screen) {
        if !self.has_editor() && self.is_by_hand() && std::io::stdin().is_terminal() {
            screen.say("");
        }
    }
}
