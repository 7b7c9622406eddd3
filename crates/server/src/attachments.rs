//! Images and files that go along with messages: their forms on the wire, and the one way to read their bytes.

use crate::door::SharedDoor;
use crate::extract::{Caller, IdKind, IdPair};
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use api::{Base64, Code, FileContent, Part};
use axum::extract::State;
use axum::response::Response;
use engine::{AttachedFile, AttachedKind, AttachmentView, MessagePart};
use http::{HeaderValue, header};
use kernel::MessageId;
use std::str::FromStr;

problems! {
    AttachmentProblems = [NotFound, RightMissing];
}

/// Get an image or a file of a message
///
/// Its bytes as they came, to be saved: whoever may read the message may have them. A receipt that was asked for with `words` says
/// which there are.
#[utoipa::path(
    get, path = "/api/v1/messages/{id}/attachments/{number}", tag = "messages", operation_id = "attachment",
    params(AttachmentName),
    responses(
        (status = 200, description = "The bytes, of the media type that their sender said.", body = Vec<u8>,
            content_type = "application/octet-stream", headers(
            ("Content-Disposition" = String, description = "`attachment`, with the name if there is one."))),
        AttachmentProblems,
    ),
)]
pub(crate) async fn attachment(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(message, Numbered(number)): IdPair<MessageId, Numbered>,
) -> ApiResult<Response> {
    let (view, content) = door.engine.views().attachment(&caller.by, message, number).await?;
    let odd = |_| ApiError::new(Code::Internal, "what is said of the attachment cannot be said in a header");
    let mut response = Response::new(content.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&view.media_type).map_err(odd)?);
    let disposition = HeaderValue::from_str(&disposition(&view.name)).map_err(odd)?;
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    // Somebody else's bytes: nothing of them may act here, whatever they are.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
}

/// To be saved, and never shown in place; a name is written so that every byte of it is harmless in a header.
fn disposition(name: &str) -> String {
    if name.is_empty() {
        return "attachment".to_owned();
    }
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("attachment; filename*=UTF-8''{escaped}")
}

/// The number of an attachment in a path. What is none names nothing.
pub(crate) struct Numbered(u32);

impl FromStr for Numbered {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number: u32 = text.parse().map_err(|_| ())?;
        if number.to_string() == text && number > 0 { Ok(Self(number)) } else { Err(()) }
    }
}

impl IdKind for Numbered {
    const WHAT: &'static str = "attachment";
}

/// The name of an attachment, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct AttachmentName {
    /// The message.
    #[param(pattern = "^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
    /// Its number among those of the message, from 1 on.
    #[param(minimum = 1, maximum = 32)]
    number: u32,
}

/// The words of a message, and what goes along.
pub(crate) fn parts_of(parts: Vec<Part>) -> (Vec<MessagePart>, Vec<AttachedFile>) {
    let (mut words, mut attachments) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text } => words.push(MessagePart::Text { text }),
            Part::Image { name, media_type, data: Base64(content) } => {
                let name = name.unwrap_or_default();
                let kind = AttachedKind::Image;
                attachments.push(AttachedFile { kind, name, media_type, content: content.into() });
            }
            Part::File { name, media_type, content } => {
                let (kind, content) = (AttachedKind::File, content.into_bytes().into());
                attachments.push(AttachedFile { kind, name, media_type, content });
            }
        }
    }
    (words, attachments)
}

/// The same on its way out.
pub(crate) fn parts_form(words: Vec<MessagePart>, attachments: Vec<AttachedFile>) -> Vec<Part> {
    let words = words.into_iter().map(|MessagePart::Text { text }| Part::Text { text });
    let attached = attachments.into_iter().map(|AttachedFile { kind, name, media_type, content }| {
        let data = Base64(content.to_vec());
        match kind {
            AttachedKind::Image => {
                Part::Image { name: Some(name).filter(|name| !name.is_empty()), media_type, data }
            }
            AttachedKind::File => Part::File { name, media_type, content: FileContent::Data(data) },
        }
    });
    words.chain(attached).collect()
}

/// The words about what goes along with a message.
pub(crate) fn attached_form(message: MessageId, views: Vec<AttachmentView>) -> Vec<api::Attached> {
    let form = |(number, view): (u32, AttachmentView)| {
        let AttachmentView { kind, name, media_type, bytes, sha256, is_text: _ } = view;
        api::Attached {
            number,
            kind: match kind {
                AttachedKind::Image => api::AttachedKind::Image,
                AttachedKind::File => api::AttachedKind::File,
            },
            name: Some(name).filter(|name| !name.is_empty()),
            media_type,
            bytes,
            sha256,
            link: format!("/api/v1/messages/{message}/attachments/{number}"),
        }
    };
    (1..).zip(views).map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::disposition;

    #[test]
    fn a_name_cannot_leave_its_place_in_a_header() {
        assert_eq!(disposition(""), "attachment");
        assert_eq!(disposition("a.png"), "attachment; filename*=UTF-8''a.png");
        assert_eq!(disposition("ä\"; x=\r\n"), "attachment; filename*=UTF-8''%C3%A4%22%3B%20x%3D%0D%0A");
    }
}
