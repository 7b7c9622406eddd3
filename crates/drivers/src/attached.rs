//! Images and files as agents take them: bytes as text in base64.

use agent::{Attachment, Message};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The bytes of an attachment as text.
pub(crate) fn in_base64(attached: &Attachment) -> String {
    STANDARD.encode(&attached.content)
}

/// An attachment as an address that holds all of it.
pub(crate) fn as_url(attached: &Attachment) -> String {
    format!("data:{};base64,{}", attached.media_type, in_base64(attached))
}

/// A message as a list: its words, if there are any, then what goes along in the agent's own form. All that we drive have the same
/// form for words.
pub(crate) fn blocks(message: &Message, block: impl Fn(&Attachment) -> Value) -> Vec<Value> {
    let words = json!({ "type": "text", "text": message.text });
    let words = Some(words).filter(|_| !message.text.is_empty() || message.attachments.is_empty());
    words.into_iter().chain(message.attachments.iter().map(block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::AttachmentKind;
    use kernel::MessageId;

    #[test]
    fn words_come_first_and_are_left_out_if_there_are_none() {
        let (name, media_type) = ("a.png".to_owned(), "image/png".to_owned());
        let attached =
            Attachment { kind: AttachmentKind::Image, name, media_type, content: vec![0, 255].into() };
        assert_eq!(as_url(&attached), "data:image/png;base64,AP8=");
        let mut message = Message::new(MessageId::from_bits(1), "");
        let block = |attached: &Attachment| json!(attached.name);
        assert_eq!(blocks(&message, block), [json!({"type": "text", "text": ""})]);
        message.attachments.push(attached);
        assert_eq!(blocks(&message, block), [json!("a.png")]);
        message.text = "look".to_owned();
        assert_eq!(blocks(&message, block), [json!({"type": "text", "text": "look"}), json!("a.png")]);
    }
}
