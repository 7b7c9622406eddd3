//! The parts of a message: words, images and files; and what is said of images and files where the message is shown.

use crate::bounds::*;
use crate::check::{invalid, words};
use crate::object::object;
use crate::{Invalid, bounds};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The images that can be said.
pub const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// Something to look at.
    Image {
        /// Its name, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// One of `IMAGE_TYPES`; its bytes have to be that.
        media_type: String,
        /// Its bytes.
        data: Base64,
    },
    /// A file.
    File {
        /// Its name, without a directory.
        name: String,
        /// Its media type, in lower case and without parameters.
        media_type: String,
        /// Its bytes, or its text.
        #[serde(flatten)]
        content: FileContent,
    },
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// Bytes.
    Data(Base64),
    /// Text.
    Text(String),
}

impl FileContent {
    /// All of it as bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Data(Base64(bytes)) => bytes,
            Self::Text(text) => text.into_bytes(),
        }
    }
}

/// Bytes, which are text in base64 on the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl fmt::Debug for Base64 {
    /// Never the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The decoder's own words would repeat what stands there.
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| de::Error::custom("not base64 (RFC 4648, with its padding)"))?;
        Ok(Self(bytes))
    }
}

impl Part {
    /// Checks what can be said without knowing agents: the server looks at names and at bytes.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Text { text } => words("parts", text),
            Self::Image { name, media_type, data } => {
                sizes(name.as_deref().unwrap_or_default(), media_type, data.0.len())
            }
            Self::File { name, media_type, content: FileContent::Data(data) } => {
                sizes(name, media_type, data.0.len())
            }
            Self::File { name, media_type, content: FileContent::Text(text) } => {
                sizes(name, media_type, text.len())
            }
        }
    }

    /// The bytes of words in it.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image { .. } | Self::File { .. } => 0,
        }
    }
}

fn sizes(name: &str, media_type: &str, bytes: usize) -> Result<(), Invalid> {
    if name.len() > ATTACHMENT_NAME_LENGTH_MAX || media_type.len() > MEDIA_TYPE_LENGTH_MAX {
        let reason = format!(
            "a name has at most {ATTACHMENT_NAME_LENGTH_MAX} bytes, and a media type {MEDIA_TYPE_LENGTH_MAX}"
        );
        return invalid("parts", reason);
    }
    if bytes > ATTACHED_BYTES_MAX {
        return invalid("parts", format!("more than {ATTACHED_BYTES_MAX} bytes of images and files"));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartFields {
    #[serde(rename = "type")]
    kind: PartKind,
    #[serde(default, deserialize_with = "present")]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    media_type: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Base64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    Text,
    Image,
    File,
}

/// Reads a field that may be left out but not be null, as the schema says.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PartFields { kind, text, name, media_type, data } = object(deserializer)?;
        match (kind, text, name, media_type, data) {
            (PartKind::Text, Some(text), None, None, None) => Ok(Self::Text { text }),
            (PartKind::Text, ..) => Err(de::Error::custom("a text has `text`, and nothing else")),
            (PartKind::Image, None, name, Some(media_type), Some(data)) => {
                Ok(Self::Image { name, media_type, data })
            }
            (PartKind::Image, ..) => Err(de::Error::custom(
                "an image has `media_type` and `data`, perhaps a `name`, and nothing else",
            )),
            (PartKind::File, None, Some(name), Some(media_type), Some(data)) => {
                Ok(Self::File { name, media_type, content: FileContent::Data(data) })
            }
            (PartKind::File, Some(text), Some(name), Some(media_type), None) => {
                Ok(Self::File { name, media_type, content: FileContent::Text(text) })
            }
            (PartKind::File, ..) => {
                Err(de::Error::custom("a file has `name`, `media_type`, and either `data` or `text`"))
            }
        }
    }
}

// By hand, because the derived one would allow unknown fields.
impl PartialSchema for Part {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let words = text().min_length(Some(1)).max_length(Some(TEXT_LENGTH_MAX)).pattern(Some("\\S"));
        let name = || {
            text().min_length(Some(1)).max_length(Some(ATTACHMENT_NAME_LENGTH_MAX)).pattern(Some(FILE_NAME))
        };
        let media_type = || text().max_length(Some(MEDIA_TYPE_LENGTH_MAX)).pattern(Some(MEDIA_TYPE));
        let data = || {
            let bytes = bounds::BASE64_LENGTH_MAX;
            text().max_length(Some(bytes)).pattern(Some(BASE64)).description(Some("Bytes in base64, padded."))
        };
        let object = |kind: &str, what: &str| {
            let kind = text().enum_values(Some([kind]));
            let object = ObjectBuilder::new().description(Some(what)).property("type", kind).required("type");
            object.additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        };
        let image = text().enum_values(Some(IMAGE_TYPES));
        let said = object("text", "Words.").property("text", words).required("text");
        let image = object("image", "Something to look at. Its bytes have to be what its media type says.")
            .property("name", name())
            .property("media_type", image)
            .property("data", data())
            .required("media_type")
            .required("data");
        let file = |what: &str| {
            let file = object("file", what).property("name", name()).property("media_type", media_type());
            file.required("name").required("media_type")
        };
        let bytes = file("A file, as bytes.").property("data", data()).required("data");
        let plain = text().max_length(Some(TEXT_LENGTH_MAX));
        let plain = file("A file that is text.").property("text", plain).required("text");
        OneOfBuilder::new().item(said).item(image).item(bytes).item(plain).into()
    }
}

impl ToSchema for Part {}

/// The name of a file: no slashes, no control characters, not `.` or `..`.
const FILE_NAME: &str = "^[^\\u0000-\\u001f\\u007f/\\\\]+$";
const MEDIA_TYPE: &str = "^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$";
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// An image or a file that goes along with a message, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attached {
    /// Its number among those of its message, from 1 on.
    pub number: u32,
    /// An image or a file.
    pub kind: AttachedKind,
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Where its bytes are: a path on the same server.
    pub link: String,
}

/// The two kinds of what goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachedKind {
    /// Something to look at.
    Image,
    /// A file.
    File,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            AttachedKind::Image => "image",
            AttachedKind::File => "file",
        };
        let name = self.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        write!(f, "{what}{name} ({}, {} bytes)", self.media_type, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_is_read_as_it_is_written() {
        let parts = [
            Part::Text { text: "look".into() },
            Part::Image { name: None, media_type: "image/png".into(), data: Base64(vec![0, 255]) },
            Part::File {
                name: "a".into(),
                media_type: "a/b".into(),
                content: FileContent::Data(Base64(vec![])),
            },
            Part::File { name: "a".into(), media_type: "a/b".into(), content: FileContent::Text("x".into()) },
        ];
        let written = serde_json::to_value(&parts).unwrap();
        let expected = json!([
            {"type": "text", "text": "look"},
            {"type": "image", "media_type": "image/png", "data": "AP8="},
            {"type": "file", "name": "a", "media_type": "a/b", "data": ""},
            {"type": "file", "name": "a", "media_type": "a/b", "text": "x"},
        ]);
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Vec<Part>>(written).unwrap(), parts);
    }

    #[test]
    fn what_does_not_belong_to_a_part_is_refused() {
        for wrong in [
            json!({"type": "text"}),
            json!({"type": "text", "text": "x", "name": "a"}),
            json!({"type": "image", "data": "AP8="}),
            json!({"type": "image", "media_type": "image/png", "data": "AP8"}),
            json!({"type": "image", "media_type": "image/png", "data": "A P8="}),
            json!({"type": "image", "media_type": "image/png", "data": null}),
            json!({"type": "image", "media_type": "image/png", "text": "x"}),
            json!({"type": "file", "name": "a", "media_type": "a/b"}),
            json!({"type": "file", "name": "a", "media_type": "a/b", "data": "", "text": ""}),
            json!({"type": "file", "media_type": "a/b", "data": ""}),
            json!({"type": "file", "name": "a", "media_type": "a/b", "data": "", "path": "/etc"}),
            json!({"type": "audio", "data": ""}),
        ] {
            assert!(serde_json::from_value::<Part>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
