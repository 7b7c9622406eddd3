//! Images and files that go along with a message: they reach the agent byte for byte, or are refused by name.

use crate::puppet::Puppet;
use crate::scope::set_agent;
use crate::vocabulary::{of_type, stories};
use crate::world::{World, state_and_why, trace};
use agent::{Abilities, AgentEvent, Attachment, AttachmentKind, FilesTaken};
use engine::{
    ATTACHED_BYTES_MAX, AttachedFile, AttachedKind, ConflictError, Granted, Inbound, Limits, MessagePart,
    ReceiptState, WayInError,
};
use kernel::{Delivery, Policy, Request, SessionId, To};
use sha2::{Digest, Sha256};
use std::sync::Arc;

use ReceiptState::{Answered, Failed};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\xff and more";

fn image(name: &str) -> AttachedFile {
    let (name, media_type) = (name.to_owned(), "image/png".to_owned());
    AttachedFile { kind: AttachedKind::Image, name, media_type, content: PNG.into() }
}

fn file(name: &str, media_type: &str, content: &'static [u8]) -> AttachedFile {
    let (name, media_type) = (name.to_owned(), media_type.to_owned());
    AttachedFile { kind: AttachedKind::File, name, media_type, content: content.into() }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn puppet(abilities: Abilities) -> Puppet {
    let done = AgentEvent::Finished { native: None, reason: String::new() };
    Puppet { says: vec![done], abilities, ..Puppet::default() }
}

async fn world_with(puppet: &Puppet) -> World {
    World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await
}

impl World {
    fn with_files(&self, to: To, text: &str, attachments: Vec<AttachedFile>) -> Inbound {
        Inbound { attachments, ..self.inbound(to, text, None) }
    }

    /// A new session with the puppet.
    fn to_puppet(&self, text: &str, attachments: Vec<AttachedFile>) -> Inbound {
        let mut inbound = self.with_files(To::New, text, attachments);
        inbound.if_new.agent = Some("puppet".to_owned());
        inbound
    }

    async fn names_of(&self, message: kernel::MessageId) -> Vec<String> {
        let views = self.engine.views().attachments(&self.me, message).await.unwrap();
        views.into_iter().map(|view| view.name).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_along_reaches_the_agent_byte_for_byte_and_in_order() {
    let world = World::new().await;
    let pdf = file("b.pdf", "application/pdf", b"%PDF-1.7\n\xff\0");
    let other = file("c.bin", "application/x-thing", b"\0\x01\x02");
    let sent = world.with_files(To::New, "look", vec![image("a.png"), pdf, other]);
    let accepted = world.engine.way_in().send(sent).await.unwrap().accepted;
    let answer = world.settled(accepted.message).await.answer.unwrap();
    let lines = [
        "#1 look".to_owned(),
        format!("got image image/png {} bytes sha256 {} a.png", PNG.len(), hash(PNG)),
        format!("got pdf application/pdf 11 bytes sha256 {} b.pdf", hash(b"%PDF-1.7\n\xff\0")),
        format!("got file application/x-thing 3 bytes sha256 {} c.bin", hash(b"\0\x01\x02")),
    ];
    assert_eq!(answer.trim(), lines.join("\n"));
    let (view, content) = world.engine.views().attachment(&world.me, accepted.message, 1).await.unwrap();
    assert_eq!((view.name.as_str(), view.bytes, &content[..]), ("a.png", PNG.len() as u64, PNG));
    // An image may come without a word.
    let alone = Inbound { parts: Vec::new(), ..world.with_files(To::New, "", vec![image("")]) };
    let alone = world.engine.way_in().send(alone).await.unwrap().accepted;
    let answer = world.settled(alone.message).await.answer.unwrap();
    assert_eq!(answer.trim(), format!("#1\ngot image image/png {} bytes sha256 {}", PNG.len(), hash(PNG)));
}

#[tokio::test(start_paused = true)]
async fn it_outlives_a_restart_and_the_session_wakes_without_it() {
    let mut world = World::new().await;
    let first = world.say(To::New, "!sleep 60000").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let sent = world.with_files(To::Session(first.session), "look", vec![image("a.png")]);
    let waits = world.engine.way_in().send(sent).await.unwrap().accepted.message;
    world.restart().await;
    let answer = world.settled(waits).await.answer.unwrap();
    assert!(answer.contains(&hash(PNG)), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_text_is_words_to_every_agent() {
    let puppet = puppet(Abilities::default());
    let world = world_with(&puppet).await;
    let files =
        vec![file("a.txt", "text/plain", "grüße\n".as_bytes()), file("b.rs", "text/x-rust", b"fn b() {}")];
    let sent = world.engine.way_in().send(world.to_puppet("look", files)).await.unwrap().accepted;
    assert_eq!(world.settled(sent.message).await.row.state, Answered);
    let handed = puppet.notes.handed.lock().unwrap().last().unwrap().0.clone();
    assert_eq!(
        handed,
        "look\n--- file a.txt\ngrüße\n--- end of a.txt\n--- file b.rs\nfn b() {}\n--- end of b.rs"
    );
    assert_eq!(world.engine.views().words(&world.me, sent.message).await.unwrap(), "look");
    assert_eq!(world.names_of(sent.message).await, ["a.txt", "b.rs"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_does_not_take_is_refused_by_name_and_nothing_is_said() {
    let puppet = puppet(Abilities { images: true, files: FilesTaken::Text, ..Abilities::default() });
    let world = world_with(&puppet).await;
    let pdf = || file("b.pdf", "application/pdf", b"%PDF-1.7");
    let refused = world.engine.way_in().send(world.to_puppet("look", vec![image("a.png"), pdf()])).await;
    let attachment = "file b.pdf (application/pdf, 8 bytes)".to_owned();
    assert_eq!(refused, Err(WayInError::NotTaken { agent: "puppet".to_owned(), attachment }));
    assert!(puppet.notes.launches.lock().unwrap().is_empty());
    let said = world.store.snapshot().audit;
    assert_eq!(said.last().unwrap().refused.as_deref(), Some("attachment_not_taken"));
    let taken =
        world.engine.way_in().send(world.to_puppet("look", vec![image("a.png")])).await.unwrap().accepted;
    assert_eq!(world.settled(taken.message).await.row.state, Answered);
    let (content, name) = (PNG.into(), "a.png".to_owned());
    let handed =
        Attachment { kind: AttachmentKind::Image, name, media_type: "image/png".to_owned(), content };
    assert_eq!(*puppet.notes.attached.lock().unwrap(), [vec![handed]]);
    // An edit goes the same way.
    let parts = [MessagePart::Text { text: "again".to_owned() }];
    let edit =
        world.engine.way_in().rewrite(&world.me, taken.message, 0, &parts, &[pdf()], trace(None)).await;
    assert!(matches!(edit, Err(WayInError::NotTaken { .. })), "{edit:?}");
}

#[tokio::test(start_paused = true)]
async fn if_the_agent_has_changed_since_the_turn_fails_and_says_what_was_not_taken() {
    let puppet = puppet(Abilities::default());
    let world = world_with(&puppet).await;
    let first = world.say(To::New, "!sleep 1000").await.unwrap().accepted;
    let session = first.session;
    world.house_has_handed(first.message).await;
    world.change(session, set_agent("puppet")).await.unwrap();
    let sent = world.with_files(To::Session(session), "look", vec![image("a.png")]);
    let waits = world.engine.way_in().send(sent).await.unwrap().accepted.message;
    world.arrived(session, 1).await;
    let there = Request::Release { message: waits, there: false };
    let _ = world.ask(there).await;
    let view = world.settled(waits).await;
    assert_eq!(state_and_why(&view), (Failed, Some("refused")));
    let notice = view.notice.unwrap();
    assert!(notice.contains("puppet does not take the image a.png (image/png, "), "{notice}");
    assert!(puppet.notes.launches.lock().unwrap().is_empty(), "nothing was started for it");
}

#[tokio::test(start_paused = true)]
async fn a_repetition_is_one_only_with_the_same_bytes() {
    let world = World::new().await;
    let with_key = |attachments| Inbound { attachments, ..world.inbound(To::New, "look", Some("key")) };
    let first = world.engine.way_in().send(with_key(vec![image("a.png")])).await.unwrap();
    let again = world.engine.way_in().send(with_key(vec![image("a.png")])).await.unwrap();
    assert_eq!((again.accepted, again.repeated), (first.accepted, true));
    let mut other = image("a.png");
    other.content = [PNG, b"!"].concat().into();
    for otherwise in [vec![other], vec![image("b.png")], vec![], vec![image("a.png"), image("a.png")]] {
        let refused = world.engine.way_in().send(with_key(otherwise)).await;
        assert_eq!(refused, Err(ConflictError::KeyReused.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_words_keeps_what_goes_along_and_another_replaces_it() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 60000").await.unwrap().accepted;
    let sent = world.with_files(To::Session(first.session), "look", vec![image("a.png"), image("b.png")]);
    let waits = world.engine.way_in().send(sent).await.unwrap().accepted.message;
    let (way_in, me) = (world.engine.way_in(), &world.me);
    let parts = |text: &str| [MessagePart::Text { text: text.to_owned() }];
    assert_eq!(way_in.edit(me, waits, 0, &parts("look here"), trace(None)).await, Ok(Granted::Done));
    assert_eq!(world.names_of(waits).await, ["a.png", "b.png"]);
    let queue = world.engine.views().queue(me, first.session).await.unwrap();
    let shown: Vec<_> = queue[1].attachments.iter().map(|view| view.name.as_str()).collect();
    assert_eq!((queue[1].text.as_str(), shown), ("look here", vec!["a.png", "b.png"]));
    let other = [file("c.txt", "text/plain", b"c")];
    assert_eq!(way_in.rewrite(me, waits, 1, &parts("this"), &other, trace(None)).await, Ok(Granted::Done));
    assert_eq!(world.names_of(waits).await, ["c.txt"]);
    assert_eq!(way_in.rewrite(me, waits, 2, &[], &[], trace(None)).await.unwrap_err().code(), "invalid");
    assert_eq!(way_in.rewrite(me, waits, 2, &parts("bare"), &[], trace(None)).await, Ok(Granted::Done));
    assert_eq!(world.names_of(waits).await, Vec::<String>::new());
    let answer = world.settled(waits).await.answer.unwrap();
    assert_eq!(answer.trim(), "#2 bare");
}

#[tokio::test(start_paused = true)]
async fn what_goes_along_can_be_said_into_a_turn() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 5000").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let sent = world.with_files(To::Session(first.session), "and this", vec![image("a.png")]);
    let added = Inbound { delivery: Delivery::Steer, ..sent };
    let added = world.engine.way_in().send(added).await.unwrap().accepted.message;
    let answer = world.settled(first.message).await.answer.unwrap();
    assert!(answer.contains(&format!("+and this\ngot image image/png {} bytes", PNG.len())), "{answer}");
    assert_eq!(world.settled(added).await.row.turn, Some(kernel::Turn(1)));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_told_again_learns_what_went_along() {
    let puppet = puppet(Abilities::default());
    let world = world_with(&puppet).await;
    let sent =
        world.with_files(To::New, "look", vec![image("a.png"), file("b.txt", "text/plain", b"long text")]);
    let session: SessionId = world.engine.way_in().send(sent).await.unwrap().accepted.session;
    world.talk(To::Session(session), "and now?").await;
    world.change(session, set_agent("puppet")).await.unwrap();
    world.arrived(session, 1).await;
    world.talk(To::Session(session), "go on").await;
    let handed = puppet.notes.handed.lock().unwrap().last().unwrap().0.clone();
    let said = format!(
        "> ann:\n> look\n> (went along: image a.png (image/png, {} bytes))\n> (went along: file b.txt (text/plain, 9 bytes))\n",
        PNG.len()
    );
    assert!(handed.contains(&said), "{handed}");
    assert_eq!(of_type(&stories(&world, session).await, "memory").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn bounds_hold_to_the_byte() {
    let world = World::new().await;
    let sized = |bytes: usize| AttachedFile {
        content: [PNG, &vec![0; bytes - PNG.len()]].concat().into(),
        ..image("a")
    };
    let send = async |text: &str, files| {
        let sent = world.with_files(To::New, text, files);
        world.engine.way_in().send(sent).await.map(drop).map_err(|error| error.to_string())
    };
    let half = ATTACHED_BYTES_MAX / 2;
    assert_eq!(send("fits", vec![sized(half), sized(ATTACHED_BYTES_MAX - half)]).await, Ok(()));
    let refused = send("more", vec![sized(half), sized(ATTACHED_BYTES_MAX - half + 1)]).await.unwrap_err();
    assert!(refused.contains(&ATTACHED_BYTES_MAX.to_string()), "{refused}");
    let many = send("many", vec![image("a"); engine::PARTS_MAX]).await.unwrap_err();
    assert!(many.contains(&engine::PARTS_MAX.to_string()), "{many}");
    assert_eq!(send("most", vec![image("a"); engine::PARTS_MAX - 1]).await, Ok(()));
    // Files that are text are words, and words have a bound of their own.
    let long = AttachedFile {
        content: vec![b'x'; engine::MESSAGE_TEXT_BYTES_MAX].into(),
        ..file("a", "text/plain", b"")
    };
    let long = send("long", vec![long]).await.unwrap_err();
    assert!(long.contains(&engine::MESSAGE_TEXT_BYTES_MAX.to_string()), "{long}");
}

#[tokio::test(start_paused = true)]
async fn an_export_has_all_words_and_of_what_went_along_the_newest() {
    let world = World::new().await;
    let large = || AttachedFile {
        content: [PNG, &vec![0; ATTACHED_BYTES_MAX - PNG.len()]].concat().into(),
        ..image("large.png")
    };
    let mut to = To::New;
    for n in 1..=4 {
        let sent = world.with_files(to, &format!("look {n}"), vec![large()]);
        let accepted = world.engine.way_in().send(sent).await.unwrap().accepted;
        world.settled(accepted.message).await;
        to = To::Session(accepted.session);
    }
    let To::Session(session) = to else { panic!("it was made") };
    let export = world.engine.views().export(&world.me, session).await.unwrap();
    assert_eq!((export.turns.len(), export.left_out.turns, export.left_out.attachments), (4, 0, 2));
    let bytes: Vec<_> = export.turns.iter().map(|turn| turn.said[0].attachments.len()).collect();
    assert_eq!(bytes, [0, 0, 1, 1]);
    let words: Vec<_> =
        export.turns[0].said[0].parts.iter().map(|MessagePart::Text { text }| text.as_str()).collect();
    assert_eq!(words, ["look 1", "(left out: image large.png (image/png, 5242880 bytes))"]);
}
