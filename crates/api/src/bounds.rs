//! Bounds on everything that a request may carry. The same figures stand in the schema and in the checks.

/// Characters of text in one message; and it may have no more bytes than this, either.
pub const TEXT_LENGTH_MAX: usize = 1024 * 1024;
/// Parts in one message.
pub const PARTS_MAX: usize = 32;
/// Bytes of the images and files that go along with one message, together.
pub const ATTACHED_BYTES_MAX: usize = 5 * 1024 * 1024;
/// The same as text in base64.
pub const BASE64_LENGTH_MAX: usize = ATTACHED_BYTES_MAX.div_ceil(3) * 4;
/// Bytes of the name of a file.
pub const ATTACHMENT_NAME_LENGTH_MAX: usize = 255;
/// Bytes of a media type.
pub const MEDIA_TYPE_LENGTH_MAX: usize = 127;
/// The body of a message in bytes: the longest text, the largest images and files as text, and some room for what is around them.
pub const MESSAGE_BODY_BYTES_MAX: usize = BODY_BYTES_MAX + BASE64_LENGTH_MAX;
/// A request's body in bytes: the longest text, and some room for what is around it.
pub const BODY_BYTES_MAX: usize = TEXT_LENGTH_MAX + 64 * 1024;
/// The file of a conversation in bytes: the longest that is made, and some room.
pub const IMPORT_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Characters in a title.
pub const TITLE_LENGTH_MAX: usize = 200;
/// Characters of an agent's name.
pub const AGENT_LENGTH_MAX: usize = 64;
/// Characters of a model's or a mode's name.
pub const MODEL_LENGTH_MAX: usize = 128;
/// Bytes of one variable of a sign-in.
pub const SECRET_LENGTH_MAX: usize = 16 * 1024;
/// Characters of a directory's path: as many as Linux has bytes for it.
pub const DIRECTORY_LENGTH_MAX: usize = 4_095;
/// The byte of a file's patch beyond which nobody asks: as much as is printed of one.
pub const PATCH_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Characters of an address: room for a directory of 1,024 bytes, each of them escaped, and some more; a head of 8 KiB
/// must be able to hold a cursor made from it.
pub const ADDRESS_LENGTH_MAX: usize = 4_096;
/// Characters of an `Idempotency-Key`.
pub const KEY_LENGTH_MAX: usize = 255;
/// Characters of a handle, of a group's and of an org's name.
pub const HANDLE_LENGTH_MAX: usize = 64;
/// Characters of what people call somebody or something.
pub const NAME_LENGTH_MAX: usize = 200;
/// Characters of an e-mail address.
pub const MAIL_LENGTH_MAX: usize = 254;
/// Characters of what somebody types to say who they are: an org, and a handle or an e-mail address.
pub const LOGIN_LENGTH_MAX: usize = 400;
/// Characters that a password must have.
pub const PASSWORD_LENGTH_MIN: usize = 8;
/// Characters that a password may have.
pub const PASSWORD_LENGTH_MAX: usize = 1_024;
/// Characters of the last part of a sign-in link.
pub const LINK_LENGTH_MAX: usize = 200;
/// The greatest whole number in a body: what fits into what schemas call `int32`.
pub const WHOLE_MAX: u32 = i32::MAX as u32;
/// Rights in a list of them: each once.
pub const RIGHTS_MAX: usize = 5;
/// Messages that can be put into order at once.
pub const ORDER_MAX: usize = 1_000;
/// Items on a page if nobody says how many.
pub const LIMIT_DEFAULT: usize = 50;
/// Items on a page at the most.
pub const LIMIT_MAX: usize = 500;
/// Seconds that one call may wait for a receipt.
pub const WAIT_SECONDS_MAX: u64 = 60;
/// The highest fact number that can be named: the greatest integer that every JSON reader keeps exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The pattern of every session id; ids of other kinds differ in the first three letters.
pub const SESSION_PATTERN: &str = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The pattern of every message id.
pub const MESSAGE_PATTERN: &str = "^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The name of a tool in a rule, in characters.
pub const TOOL_LENGTH_MAX: usize = 256;
/// The pattern of every rule's id.
pub const RULE_PATTERN: &str = "^rul_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The pattern of every approval id.
pub const APPROVAL_PATTERN: &str = "^apr_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The pattern of every person's id.
pub const PERSON_PATTERN: &str = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The pattern of every group's id.
pub const GROUP_PATTERN: &str = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$";
/// The pattern of every credential's id.
pub const TOKEN_PATTERN: &str = "^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$";
