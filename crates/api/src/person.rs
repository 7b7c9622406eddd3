//! Who is asking, as the server sees them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whose credential this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The person.
    pub person: String,
    /// The org the credential belongs to.
    pub org: String,
    /// The name that stands in this person's addresses: `web:HANDLE/…`, `cli:HOST/HANDLE/…`.
    pub handle: String,
}
