//! The background where it is kept: it goes on, is listed, and ends with a word of what it was, whoever ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::conformance::Candidate;
use agent::{Agent, AgentEvent, Launch, Message};
use homing_drivers::{BackgroundPolicy, ScriptedConfig};
use kernel::SessionId;

use crate::bench::{Bench, Turned, WAIT, be_ready, count_commands, to_the_end, until};

/// The notices of sessions in which no turn runs.
type Notices = Arc<Mutex<Vec<(SessionId, String)>>>;

fn bench() -> Bench {
    bench_with(|config| config)
}

fn bench_with(change: impl FnOnce(ScriptedConfig) -> ScriptedConfig) -> Bench {
    let background = BackgroundPolicy::Kept;
    Bench::with(|config| change(ScriptedConfig { kept_max: 2, background, ..config }))
}

fn listen(bench: &Bench) -> Notices {
    let notices = Notices::default();
    let heard = notices.clone();
    bench.agent.tell_notices_to(Arc::new(move |session, text| heard.lock().unwrap().push((session, text))));
    notices
}

/// Words that make it leave a process running, and how that one is called.
fn leaving(seconds: &str) -> (String, String) {
    (format!("!run sleep {seconds} >/dev/null 2>&1 &"), format!("sleep {seconds}"))
}

async fn turn(bench: &Bench, launch: &mut Launch, text: &str) -> Turned {
    let turned = bench.turn(launch, text).await;
    launch.native = turned.native();
    turned
}

fn notices(events: &[AgentEvent]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let AgentEvent::Notice { text } = event {
            texts.push(text.as_str());
        }
    }
    texts
}

#[tokio::test]
async fn what_a_turn_leaves_running_goes_on_in_the_next_and_is_listed() {
    let (bench, heard) = (bench(), Notices::default());
    let mut launch = bench.launch();
    let (words, command) = leaving("4301.5");
    let first = turn(&bench, &mut launch, &words).await;
    assert_eq!(notices(&first.events), [format!("goes on in the background: `{command}`")]);
    assert_eq!(count_commands(&command), 1);
    let listed = bench.agent.background(launch.session).await;
    assert_eq!((listed.processes, listed.oldest[0].command.as_str()), (1, command.as_str()));
    assert!(listed.oldest[0].age_ms < 60_000, "{listed:?}");

    let mut running = bench.attempt(&launch, "!sleep 200", "#2").await;
    assert_eq!(
        bench.agent.background(launch.session).await.words(),
        format!("`{command}`"),
        "in a turn, too"
    );
    let (events, _) = to_the_end(&mut *running).await;
    assert_eq!((bench.agent_pid(&launch), notices(&events)), (first.pid, Vec::new()), "nothing is new");
    assert_eq!(count_commands(&command), 1);
    assert!(bench.agent.background(bench.session()).await.is_empty(), "another session has its own");

    assert_eq!(bench.agent.release(launch.session).await.words(), format!("`{command}`"));
    assert_eq!((bench.left(&launch.tree), count_commands(&command)), (0, 0));
    assert!(bench.agent.background(launch.session).await.is_empty() && heard.lock().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0, "no note is left");
}

/// Between a turn and the next one a tree changes hands twice. Whoever looks meanwhile sees it with one of them.
#[tokio::test]
async fn it_is_listed_while_a_turn_begins_and_while_one_ends() {
    let bench = Arc::new(bench());
    let mut launch = bench.launch();
    let (words, command) = leaving("4309.5");
    turn(&bench, &mut launch, &words).await;
    let (session, looked, over) = (launch.session, bench.clone(), Arc::new(AtomicBool::new(false)));
    let until_over = over.clone();
    let looks = tokio::spawn(async move {
        let mut seen = 0;
        while !until_over.load(Ordering::Relaxed) {
            assert_eq!(looked.agent.background(session).await.processes, 1, "look {seen}");
            seen += 1;
            tokio::task::yield_now().await;
        }
        seen
    });
    for round in 0..20 {
        turn(&bench, &mut launch, &format!("round {round}")).await;
    }
    over.store(true, Ordering::Relaxed);
    assert!(looks.await.unwrap() > 40, "it was looked at");
    bench.agent.close().await;
    assert_eq!(count_commands(&command), 0);
}

#[tokio::test]
async fn a_second_process_is_told_and_one_that_has_ended_is_not_listed() {
    let bench = bench();
    let mut launch = bench.launch();
    let ((first, one), (second, other)) = (leaving("4302.5"), leaving("0.4"));
    turn(&bench, &mut launch, &first).await;
    let turned = turn(&bench, &mut launch, &second).await;
    // The second may have gone by itself within the time in which everything settles.
    assert!(notices(&turned.events).iter().all(|text| text.contains(&one)), "{:?}", turned.events);
    until("it ends by itself", WAIT, || count_commands(&other) == 0).await;
    assert_eq!(bench.agent.background(launch.session).await.words(), format!("`{one}`"));
    bench.agent.close().await;
}

#[tokio::test]
async fn it_ends_when_nobody_comes_and_the_session_is_told() {
    let bench = bench_with(|config| ScriptedConfig { idle_max: Duration::from_millis(300), ..config });
    let heard = listen(&bench);
    let mut launch = bench.launch();
    let (words, command) = leaving("4303.5");
    turn(&bench, &mut launch, &words).await;
    bench.nothing_left_within(&launch.tree, WAIT).await;
    until("it is told", WAIT, || !heard.lock().unwrap().is_empty()).await;
    let (session, text) = heard.lock().unwrap()[0].clone();
    assert_eq!(session, launch.session);
    assert!(text.contains("nobody has said anything") && text.contains(&command), "{text}");
    assert_eq!(count_commands(&command), 0);
}

#[tokio::test]
async fn whoever_has_nothing_in_the_background_goes_first_when_there_are_too_many() {
    let bench = bench();
    let heard = listen(&bench);
    let mut launches = [bench.launch(), bench.launch(), bench.launch(), bench.launch()];
    let (words, command) = leaving("4304.5");
    for (launch, words) in launches.iter_mut().zip([words.as_str(), "two", words.as_str()]) {
        turn(&bench, launch, words).await;
    }
    bench.nothing_left_within(&launches[1].tree, WAIT).await;
    assert_eq!((count_commands(&command), heard.lock().unwrap().len()), (2, 0));
    turn(&bench, &mut launches[3], words.as_str()).await;
    bench.nothing_left_within(&launches[0].tree, WAIT).await;
    until("it is told", WAIT, || !heard.lock().unwrap().is_empty()).await;
    let told = heard.lock().unwrap().clone();
    assert!(told.len() == 1 && told[0].0 == launches[0].session, "{told:?}");
    assert!(told[0].1.contains("other sessions have come since"), "{told:?}");
    bench.agent.close().await;
    assert_eq!(count_commands(&command), 0);
}

#[tokio::test]
async fn it_ends_when_the_next_turn_needs_another_process() {
    let bench = bench();
    let heard = listen(&bench);
    let mut launch = bench.launch();
    let (words, command) = leaving("4305.5");
    let first = turn(&bench, &mut launch, &words).await;
    launch.model = Some("small".to_owned());
    assert_ne!(turn(&bench, &mut launch, "two").await.pid, first.pid);
    assert_eq!(count_commands(&command), 0);
    let told = heard.lock().unwrap().clone();
    assert!(
        told.len() == 1 && told[0].1.contains("another process") && told[0].1.contains(&command),
        "{told:?}"
    );
    bench.agent.close().await;
}

#[tokio::test]
async fn a_turn_that_is_stopped_or_dies_ends_it_and_says_so() {
    let bench = bench();
    let (words, command) = leaving("4306.5");
    let named = |events: &[AgentEvent]| {
        let told =
            notices(events).into_iter().filter(|text| text.contains("was ended with the agent's process"));
        told.filter(|text| text.contains(&command)).count()
    };
    let mut launch = bench.launch();
    turn(&bench, &mut launch, &words).await;
    let mut running = bench.attempt(&launch, "!sleep 60000", "#2").await;
    assert!(running.stop(5_000).await.gone);
    assert_eq!((bench.left(&launch.tree), count_commands(&command)), (0, 0));
    assert_eq!(named(&to_the_end(&mut *running).await.0), 1);

    turn(&bench, &mut launch, &words).await;
    let crashed = bench.turn(&launch, "!crash").await;
    assert!(
        matches!(crashed.last(), AgentEvent::Died { verified, .. } if verified.gone),
        "{:?}",
        crashed.events
    );
    assert_eq!(named(&crashed.events), 1, "{:?}", crashed.events);
    assert_eq!((bench.left(&launch.tree), count_commands(&command)), (0, 0));
    // Everybody was told: the next turn says nothing of it.
    assert_eq!(notices(&turn(&bench, &mut launch, "again").await.events), Vec::<&str>::new());
    bench.agent.close().await;
}

#[tokio::test]
async fn a_kept_process_that_is_killed_takes_it_along_and_the_session_is_told() {
    let bench = bench();
    let heard = listen(&bench);
    let mut launch = bench.launch();
    let (words, command) = leaving("4307.5");
    turn(&bench, &mut launch, &words).await;
    bench.strike(&launch.tree, agent::conformance::Blow::Kill).unwrap();
    bench.nothing_left_within(&launch.tree, WAIT).await;
    until("it is told", WAIT, || !heard.lock().unwrap().is_empty()).await;
    let told = heard.lock().unwrap().clone();
    assert!(told[0].1.contains("own process has gone") && told[0].1.contains(&command), "{told:?}");
    assert_eq!(count_commands(&command), 0);
}

/// The note of it outlives the server, which has nobody to tell when it goes.
#[tokio::test]
async fn the_next_turn_says_what_went_with_the_server() {
    let bench = bench();
    let heard = listen(&bench);
    let mut launch = bench.launch();
    let (words, command) = leaving("4308.5");
    turn(&bench, &mut launch, &words).await;
    bench.agent.close().await;
    assert_eq!((bench.left(&launch.tree), count_commands(&command)), (0, 0));
    assert!(heard.lock().unwrap().is_empty());

    let mut running = bench.agent.start(launch.clone()).await.unwrap();
    let first = tokio::time::timeout(WAIT, running.next()).await.unwrap();
    let text =
        format!("what ran in the background was ended, because the server had gone in between: `{command}`");
    assert_eq!(first, AgentEvent::Notice { text });
    be_ready(&mut *running).await;
    running
        .hand(Message { id: launch.message, text: "hello".to_owned(), attachments: Vec::new() })
        .await
        .unwrap();
    assert_eq!(notices(&to_the_end(&mut *running).await.0), Vec::<&str>::new());
    bench.agent.close().await;
    assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0, "it is told once");
}

#[tokio::test]
async fn a_list_is_bounded_and_counts_all() {
    let bench = bench();
    let mut launch = bench.launch();
    let turned = turn(&bench, &mut launch, "!fork-bomb 50").await;
    let told = notices(&turned.events);
    assert!(told.len() == 1 && told[0].ends_with("and 45 more"), "{told:?}");
    let listed = bench.agent.background(launch.session).await;
    assert_eq!((listed.processes, listed.oldest.len()), (50, 20));
    assert_eq!(bench.agent.release(launch.session).await.processes, 50);
    assert_eq!((bench.left(&launch.tree), bench.children(&launch.tree)), (0, 0));
}

/// The default, and what it says.
#[tokio::test]
async fn where_it_is_not_kept_it_is_ended_with_the_turn_and_named() {
    let bench = Bench::with(|config| ScriptedConfig { kept_max: 2, ..config });
    let mut launch = bench.launch();
    let (words, command) = leaving("4309.5");
    let turned = turn(&bench, &mut launch, &words).await;
    let text = format!("ended a process that the agent had left behind: `{command}`");
    assert_eq!(notices(&turned.events), [text]);
    assert_eq!((bench.left(&launch.tree), count_commands(&command)), (0, 0));
    assert!(bench.agent.background(launch.session).await.is_empty());
    assert!(!bench.agent.setup().keeps_background);
}
