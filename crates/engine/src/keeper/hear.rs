//! What an agent says, turned into news: words that grow, stories, questions, and reports for the kernel.
//!
//! Nothing is decided here. What comes from an attempt that no longer counts is only counted.

use super::Keeper;
use super::Stop;
use super::plan::{News, Question};
use crate::story::{Story, WordKind, Words};
use crate::turn::Heard;
use agent::{About, AgentEvent, Form};
use kernel::{Errand, ErrandKind, Report, ReportKind, Return};
use tokio::time::Instant;

impl Keeper {
    pub(super) async fn take_in(&mut self, heard: Heard, news: &mut News) -> Result<(), Stop> {
        let Some(runner) = &self.runner else { return Ok(()) };
        let fence = runner.fence;
        if !self.state.hears(fence) {
            news.stale.push((fence, kind_of(&heard)));
            return Ok(());
        }
        news.stories.append(&mut self.preface);
        match heard {
            Heard::Event(event) => self.take_event(event, news).await?,
            Heard::Stopped(verified) => {
                self.end_words(news);
                let story = Story::Stopped { killed: verified.killed, gone: verified.gone };
                news.stories.push(story.entry(fence.turn));
            }
            Heard::Adding(message) => self.runner.iter_mut().for_each(|runner| runner.went_in(message)),
            Heard::Changes(changes) => {
                self.end_words(news);
                news.stories.push(Story::changes(&changes).entry(fence.turn));
            }
            Heard::NoTree => self.untracked = Some(self.scope.directory.clone()),
            Heard::Report(report) => {
                if !matches!(report, Report::Ready { .. } | Report::Missed { .. }) {
                    self.end_words(news);
                    news.stories.extend(self.progress.cut(fence.turn));
                }
                // A node that goes down did not stop the turn for anybody: it lost it.
                let report = match report {
                    Report::Stopped if self.closing => Report::Lost,
                    report => report,
                };
                news.reports.push((fence, report));
            }
        }
        Ok(())
    }

    async fn take_event(&mut self, event: AgentEvent, news: &mut News) -> Result<(), Stop> {
        let Some(turn) = self.runner.as_ref().map(|runner| runner.fence.turn) else { return Ok(()) };
        match event {
            AgentEvent::Text { text } => self.take_words(WordKind::Text, &text, news),
            AgentEvent::Reasoning { text } => self.take_words(WordKind::Reasoning, &text, news),
            AgentEvent::ToolProgress { call, output } => self.take_progress(&call, &output, news),
            AgentEvent::Asked { question, tool, detail, form } => {
                self.take_question(question, &tool, &detail, &form, news).await?;
            }
            AgentEvent::Withdrawn { question } => self.take_back(&question, news),
            AgentEvent::About(about) => self.take_about(&about, news),
            event => {
                self.end_words(news);
                if let AgentEvent::ToolResult { call, .. } = &event {
                    news.stories.extend(self.progress.end(call, turn));
                }
                news.stories.extend(story_of(&event).map(|story| story.entry(turn)));
            }
        }
        Ok(())
    }

    fn take_words(&mut self, kind: WordKind, text: &str, news: &mut News) {
        let Some(runner) = &self.runner else { return };
        let turn = runner.fence.turn;
        if self.words.as_ref().is_some_and(|words| words.kind != kind) {
            self.end_words(news);
        }
        let part = self.parts;
        let words = self.words.get_or_insert_with(|| Words::new(kind, part));
        let offset = words.hear(text);
        if words.pending_bytes() >= self.engine.limits().words_bytes_max {
            // These are written at once: watchers hear them as a fact, and need no second copy ahead of it.
            news.stories.extend(words.cut(turn));
            self.unwritten_since = None;
            return;
        }
        let (part, text, frame) = (words.part, text.to_owned(), std::sync::OnceLock::new());
        let live = crate::Live { turn, kind: kind.word(), part, offset, text, frame };
        self.unwritten_since.get_or_insert_with(Instant::now);
        self.engine.fanout().tell_live(self.session, live);
    }

    /// What a tool prints is no part of the answer, whose words may go on meanwhile.
    fn take_progress(&mut self, call: &str, output: &str, news: &mut News) {
        let Some(runner) = &self.runner else { return };
        self.progress.hear(call, output);
        if self.progress.pending_bytes() >= self.engine.limits().words_bytes_max {
            news.stories.extend(self.progress.cut(runner.fence.turn));
        }
    }

    async fn take_question(
        &mut self,
        question: String,
        tool: &str,
        detail: &str,
        form: &Form,
        news: &mut News,
    ) -> Result<(), Stop> {
        self.end_words(news);
        let (posed, answer) = self.judge(tool, form).await?;
        let approval = self.engine.mint_approval();
        let Some(runner) = &mut self.runner else { return Ok(()) };
        runner.asked(approval, question);
        let fence = runner.fence;
        let story = Story::question(approval, &self.scope, tool, detail, form).entry(fence.turn);
        news.questions.push(Question { fence, approval, posed, story, answer });
        Ok(())
    }

    fn take_back(&mut self, question: &str, news: &mut News) {
        let Some(runner) = &mut self.runner else { return };
        let fence = runner.fence;
        let reports = runner.taken_back(question).into_iter();
        news.reports.extend(reports.map(|approval| (fence, Report::Withdrawn { approval })));
    }

    /// Agents say the same about themselves at each start; people are told what is new.
    fn take_about(&mut self, about: &About, news: &mut News) {
        let Some(runner) = &self.runner else { return };
        let epoch = runner.fence.epoch;
        self.engine.roster().hear(&self.scope.agent, self.session, epoch, about);
        let lists = [(ErrandKind::Commands, &about.commands), (ErrandKind::Models, &about.models)];
        let listed = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let errand = Errand { epoch, number: 0 };
        news.returns.extend(listed.map(|(kind, _)| (errand, Return::Seen(kind))));
        let story = Story::about(about);
        let mark = story.mark();
        if self.told.about.replace(mark) != Some(mark) {
            news.stories.push(story.entry(runner.fence.turn));
        }
    }

    pub(super) fn end_words(&mut self, news: &mut News) {
        self.unwritten_since = None;
        let (Some(mut words), Some(runner)) = (self.words.take(), &self.runner) else { return };
        let turn = runner.fence.turn;
        self.parts += 1;
        news.stories.extend(words.cut(turn));
        news.stories.push(words.close(turn));
    }

    /// What was heard and is to be written down by now.
    pub(super) fn unwritten(&mut self) -> News {
        self.unwritten_since = None;
        let mut news = News::default();
        let Some(runner) = &self.runner else { return news };
        let turn = runner.fence.turn;
        news.stories.extend(self.words.as_mut().and_then(|words| words.cut(turn)));
        news.stories.extend(self.progress.cut(turn));
        news
    }
}

fn kind_of(heard: &Heard) -> ReportKind {
    match heard {
        Heard::Report(report) => report.kind(),
        Heard::Event(_) | Heard::Stopped(_) | Heard::Adding(_) | Heard::Changes(_) | Heard::NoTree => {
            ReportKind::Said
        }
    }
}

fn story_of(event: &AgentEvent) -> Option<Story<'_>> {
    match event {
        AgentEvent::ToolCall { call, tool, input } => Some(Story::ToolCall { call, tool, input }),
        AgentEvent::ToolResult { call, output, failed } => {
            Some(Story::ToolResult { call, output, failed: *failed })
        }
        AgentEvent::Plan { steps } => Some(Story::plan(steps)),
        AgentEvent::FileChanged { path, change } => Some(Story::file_changed(path, *change)),
        AgentEvent::Usage(usage) => Some(Story::usage(usage)),
        AgentEvent::Notice { text } => Some(Story::Notice { text }),
        AgentEvent::Other { raw } => Some(Story::Other { raw }),
        AgentEvent::Finished { reason, .. } => Some(Story::Finished { reason }),
        // Words, progress, questions and what it says of itself have their own ways; the rest are reports, or say what
        // `Finished` will say again.
        AgentEvent::Text { .. }
        | AgentEvent::Reasoning { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::Asked { .. }
        | AgentEvent::Withdrawn { .. }
        | AgentEvent::About(_)
        | AgentEvent::Ready { .. }
        | AgentEvent::Native(_)
        | AgentEvent::Failed(_)
        | AgentEvent::Died { .. } => None,
    }
}
