//! Somebody else on the server: who was let in by a link, and their token.

use serde_json::json;

use crate::Asked;
use crate::http::{Connection, post};

/// Lets somebody in, and answers the token of their command line.
pub(crate) async fn let_in(asked: &Asked, handle: &str) -> String {
    let mut connection = Connection::open(asked.host()).await;
    let added = connection.ask(&post(asked, "/api/v1/users", &json!({ "handle": handle }))).await.json();
    let path = added["link"]["path"].as_str().expect("a link");
    let code = path.rsplit(['/', '#', '=']).next().expect("the end of it");
    let signed =
        connection.ask(&post(asked, "/api/v1/sign-in", &json!({ "link": code, "for": "cli" }))).await.json();
    signed["secret"].as_str().expect("a secret").to_owned()
}
