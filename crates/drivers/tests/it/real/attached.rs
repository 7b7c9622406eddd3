//! Images and files with real agents: whatever an agent takes is in what it asks its model, byte for byte; everything else is refused by
//! name before a byte of the message leaves us.

use agent::{Agent, AgentEvent, Attachment, AttachmentKind, FilesTaken, Launch, Message, Running};
use base64::Engine;
use kernel::{Failure, MessageId, SessionId};
use testkit::{AgentFixture, RealAgent};

use super::table;
use crate::bench::{fence, ground};

/// Eight by eight grey dots.
pub(crate) const PNG: &[u8] = include_bytes!("../../../testdata/small.png");

/// A document with one empty page.
const PDF: &[u8] = b"%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj
trailer<</Root 1 0 R>>
%%EOF
";

fn attachment(kind: AttachmentKind) -> Attachment {
    let (name, media_type, content) = match kind {
        AttachmentKind::Image => ("dots.png", "image/png", PNG),
        AttachmentKind::Pdf => ("page.pdf", "application/pdf", PDF),
        AttachmentKind::Other => ("odd.bin", "application/x-odd", &b"\0\x01"[..]),
    };
    Attachment { kind, name: name.to_owned(), media_type: media_type.to_owned(), content: content.into() }
}

/// Tells an agent to look at each kind of thing, in a process of its own, and writes down what came of it.
pub(crate) async fn goes_along(which: RealAgent, make: fn(&AgentFixture) -> Box<dyn Agent>) {
    let mut seen = Vec::new();
    for (row, kind) in [("an image", AttachmentKind::Image), ("a PDF file", AttachmentKind::Pdf)] {
        seen.push((table::goes_along(row), one(which, make, kind).await));
    }
    one(which, make, AttachmentKind::Other).await;
    table::check(which, &seen);
}

async fn one(which: RealAgent, make: fn(&AgentFixture) -> Box<dyn Agent>, kind: AttachmentKind) -> String {
    let stage = AgentFixture::new(which);
    let agent = make(&stage);
    let launch =
        Launch::new(SessionId::from_bits(7), fence(), MessageId::from_bits(8), ground(stage.directory()));
    let mut running = agent.start(launch.clone()).await.unwrap();
    be_ready(&mut *running).await;
    let mut message = Message::new(launch.message, "CODE:look");
    message.attachments = vec![attachment(kind)];
    let handed = running.hand(message).await;
    let is_taken = match handed {
        Ok(()) => {
            to_the_end(&mut *running).await;
            let bytes = base64::engine::general_purpose::STANDARD.encode(attachment(kind).content);
            // Some ask their model once more after the turn, for their own memory.
            let asked: Vec<String> = stage.model.turns().iter().map(|asked| asked.body.to_string()).collect();
            let sees = |body: &String| body.contains(&bytes) && body.contains("CODE:look");
            assert!(asked.iter().any(sees), "the model does not see it: {asked:#?}");
            true
        }
        Err(trouble) => {
            assert_eq!(trouble.failure, Failure::Refused, "{trouble}");
            assert!(trouble.detail.contains(&attachment(kind).name), "{trouble}");
            assert!(stage.model.turns().is_empty(), "nothing has left us");
            false
        }
    };
    running.stop(0).await;
    agent.close().await;
    assert_eq!(is_taken, agent.abilities().takes(kind), "it can do what it says, and no more");
    let says = if kind == AttachmentKind::Image {
        agent.abilities().images
    } else {
        agent.abilities().files != FilesTaken::Text
    };
    assert!(kind == AttachmentKind::Other || says == is_taken);
    if is_taken { "its model sees it".to_owned() } else { "– refused by name".to_owned() }
}

async fn be_ready(running: &mut dyn Running) {
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => return,
            event if event.is_last() => panic!("{event:?}"),
            _ => {}
        }
    }
}

async fn to_the_end(running: &mut dyn Running) {
    loop {
        match running.next().await {
            AgentEvent::Finished { .. } => return,
            event if event.is_last() => panic!("{event:?}"),
            _ => {}
        }
    }
}
