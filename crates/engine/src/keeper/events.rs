//! The events of an agent, turned into news: words that grow, stories, questions, and reports for the kernel.
//!
//! Nothing is decided here. What comes from an attempt that no longer counts is only counted.

use super::attempt::{Fork, RunningAttempt};
use super::plan::{NewApproval, StepInput};
use super::{Keeper, Phase, Stop};
use crate::cluster::Happened;
use crate::inbound::title_of;
use crate::story::{Story, WordKind};
use crate::turn::RunnerOutput;
use agent::{About, AgentEvent, Form};
use kernel::{Answer, Answerer, ApprovalTerms, Errand, ErrandKind, Failure, Report, ReportKind, Return};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Keeper {
    pub(super) async fn take_in(&mut self, output: RunnerOutput, news: &mut StepInput) -> Result<(), Stop> {
        let Some(attempt) = self.outside.attempt_mut() else { return Ok(()) };
        let fence = attempt.fence();
        if !self.state.hears(fence) {
            news.stale.push((fence, kind_of(&output)));
            return Ok(());
        }
        if !attempt.is_heard(&output) {
            return Ok(());
        }
        // What is written anyway takes it along.
        let (at, may_wait) = (news.stories.len(), news.stories.is_empty() && may_wait(&output));
        news.stories.append(&mut attempt.take_preface());
        self.take_heard(output, news).await?;
        self.write_or_put_off(at, may_wait, news);
        Ok(())
    }

    /// Puts off what was just heard if nobody waits for it; otherwise what was put off before stands before it.
    fn write_or_put_off(&mut self, at: usize, may_wait: bool, news: &mut StepInput) {
        let bytes_max = self.engine.limits().words_bytes_max;
        let Some(attempt) = self.outside.attempt_mut() else { return };
        let is_written = news.stories.len() > at || !news.reports.is_empty() || !news.approvals.is_empty();
        let earlier = match (may_wait, is_written) {
            (true, _) => attempt.put_off(news.stories.split_off(at), bytes_max),
            (false, true) => attempt.take_put_off(),
            (false, false) => return,
        };
        drop(news.stories.splice(at..at, earlier));
    }

    async fn take_heard(&mut self, output: RunnerOutput, news: &mut StepInput) -> Result<(), Stop> {
        let Some(attempt) = self.outside.attempt_mut() else { return Ok(()) };
        let fence = attempt.fence();
        match output {
            RunnerOutput::Event(event) => self.take_event(event, news).await?,
            RunnerOutput::Stopped(verified) => {
                attempt.end_words(&mut news.stories);
                let story = Story::Stopped { killed: verified.killed, gone: verified.gone };
                news.stories.push(story.entry(fence.turn));
            }
            RunnerOutput::Adding(message) => attempt.runner.went_in(message),
            RunnerOutput::Changes(changes) => {
                attempt.end_words(&mut news.stories);
                news.stories.push(Story::changes(&changes).entry(fence.turn));
            }
            RunnerOutput::NoTree => self.untracked = Some(self.scope.directory.clone()),
            RunnerOutput::Report(report) => self.take_report(report, news).await,
        }
        Ok(())
    }

    async fn take_report(&mut self, report: Report, news: &mut StepInput) {
        if let Report::Ready { .. } = report
            && !self.checks_fork().await
        {
            return; // It is given up, and reports that.
        }
        let Some(attempt) = self.outside.attempt_mut() else { return };
        let fence = attempt.fence();
        match (&report, attempt.last_notice) {
            (Report::Failed(Failure::Transient), Some(words)) => {
                self.engine.roster().failed(self.session, words);
            }
            (Report::Finished { .. } | Report::Failed(_), _) => {
                self.engine.roster().forget_failures(self.session);
            }
            _ => {}
        }
        if !matches!(report, Report::Ready { .. } | Report::Missed { .. }) {
            attempt.end_words(&mut news.stories);
            news.stories.extend(attempt.progress.cut(fence.turn));
        }
        // A node that goes down did not stop the turn for anybody: it lost it.
        let report = match (report, self.phase) {
            (Report::Stopped, Phase::Closing) => Report::Lost,
            (report, _) => report,
        };
        news.reports.push((fence, report));
    }

    /// True if the words may go to what the agent has forked: it knows nothing of what its origin was told after the
    /// turn where this fork begins.
    async fn checks_fork(&mut self) -> bool {
        let Some(Fork::Unchecked(origin)) = self.outside.attempt().map(|attempt| attempt.fork) else {
            return true;
        };
        let is_clean = self.is_clean_fork(origin).await;
        if let Some(attempt) = self.outside.attempt_mut() {
            attempt.fork = if is_clean { Fork::Clean } else { Fork::GoneOn };
        }
        is_clean
    }

    async fn take_event(&mut self, event: AgentEvent, news: &mut StepInput) -> Result<(), Stop> {
        let bytes_max = self.engine.limits().words_bytes_max;
        let Some(attempt) = self.outside.attempt_mut() else { return Ok(()) };
        let turn = attempt.fence().turn;
        let event = match event {
            AgentEvent::Warned { text } if !self.told.is_new_warning(&text) => return Ok(()),
            AgentEvent::Warned { text } => AgentEvent::Notice { text },
            event => event,
        };
        match event {
            AgentEvent::Text { text } => self.take_words(WordKind::Text, &text, news),
            AgentEvent::Reasoning { text } => self.take_words(WordKind::Reasoning, &text, news),
            AgentEvent::ToolProgress { call, output } => {
                attempt.take_progress(&call, &output, bytes_max, &mut news.stories);
            }
            AgentEvent::Asked { question, tool, kind, detail, form } => {
                let judged = self.judge(&tool, &kind, &form).await?;
                self.take_approval(question, judged, (&tool, &detail, &form), news);
            }
            AgentEvent::Withdrawn { question } => {
                let (fence, withdrawn) = (attempt.fence(), attempt.runner.taken_back(&question));
                let reports = withdrawn.into_iter().map(|approval| Report::Withdrawn { approval });
                news.reports.extend(reports.map(|report| (fence, report)));
            }
            AgentEvent::About(about) => self.take_about(&about, news),
            AgentEvent::Titled { title } => {
                let title = title_of(&title);
                news.stories.extend(title.map(|title| Story::Title { title: &title }.entry(turn)));
            }
            event => {
                if let AgentEvent::Notice { text } = &event {
                    attempt.last_notice = Some(hash_of_words(text));
                }
                attempt.end_words(&mut news.stories);
                if let AgentEvent::ToolResult { call, .. } = &event {
                    news.stories.extend(attempt.progress.end(call, turn));
                }
                news.stories.extend(story_of(&event).map(|story| story.entry(turn)));
            }
        }
        Ok(())
    }

    fn take_words(&mut self, kind: WordKind, text: &str, news: &mut StepInput) {
        let bytes_max = self.engine.limits().words_bytes_max;
        let Some(attempt) = self.outside.attempt_mut() else { return };
        if let Some(live) = attempt.take_words(kind, text, bytes_max, &mut news.stories) {
            self.engine.cluster().tell(Happened::Live(self.session, live));
        }
    }

    fn take_approval(
        &mut self,
        question: String,
        (terms, answer): (ApprovalTerms, Option<(Answer, Answerer)>),
        (tool, detail, form): (&str, &str, &Form),
        news: &mut StepInput,
    ) {
        let approval = self.engine.ports().mint_approval();
        let Some(attempt) = self.outside.attempt_mut() else { return };
        attempt.end_words(&mut news.stories);
        attempt.runner.asked(approval, question);
        let fence = attempt.fence();
        let story = Story::approval(approval, &self.scope, tool, detail, form).entry(fence.turn);
        news.approvals.push(NewApproval { fence, approval, terms, story, answer });
    }

    /// Agents say the same about themselves at each start; people are told what is new.
    fn take_about(&mut self, about: &About, news: &mut StepInput) {
        let Some(fence) = self.outside.attempt().map(RunningAttempt::fence) else { return };
        let epoch = fence.epoch;
        self.engine.roster().hear(&self.scope.agent, self.session, epoch, about);
        let lists = [(ErrandKind::Commands, &about.commands), (ErrandKind::Models, &about.models)];
        let listed = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let errand = Errand { epoch, number: 0 };
        news.returns.extend(listed.map(|(kind, _)| (errand, Return::Seen(kind))));
        let story = Story::about(about);
        let mark = story.mark();
        if self.told.about.replace(mark) != Some(mark) {
            news.stories.push(story.entry(fence.turn));
        }
    }
}

/// True of what nobody waits for: it is written with what follows, and saves a commit that would be in the way of the agent's own files
/// and of the turn's end.
fn may_wait(output: &RunnerOutput) -> bool {
    use AgentEvent::{Finished, Notice, Usage, Warned};
    matches!(
        output,
        RunnerOutput::Event(Usage(_) | Notice { .. } | Warned { .. } | Finished { .. })
            | RunnerOutput::Changes(_)
    )
}

/// The hash of what a failure says, without the words that have figures in them: times and the ids of requests are different each
/// time.
fn hash_of_words(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let plain =
        words.filter(|word| !word.is_empty() && !word.contains(|letter: char| letter.is_ascii_digit()));
    plain.for_each(|word| word.hash(&mut hasher));
    hasher.finish()
}

fn kind_of(output: &RunnerOutput) -> ReportKind {
    match output {
        RunnerOutput::Report(report) => report.kind(),
        RunnerOutput::Event(_)
        | RunnerOutput::Stopped(_)
        | RunnerOutput::Adding(_)
        | RunnerOutput::Changes(_)
        | RunnerOutput::NoTree => ReportKind::Said,
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
        AgentEvent::Notice { text } | AgentEvent::Warned { text } => Some(Story::Notice { text }),
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
        | AgentEvent::Titled { .. }
        | AgentEvent::Ready { .. }
        | AgentEvent::Native(_)
        | AgentEvent::Failed(_)
        | AgentEvent::Died { .. } => None,
    }
}
