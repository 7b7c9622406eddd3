//! The few pages that need no app: what happened to somebody who followed a link to sign in. They are the same for everybody, and have
//! no script.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const BUTTON_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("link_page/page.css"))
}

/// A page that says what happened to somebody who followed a link. Its words are our own HTML, never a caller's.
pub(crate) fn kind_page(status: StatusCode, title: &str, words: &str) -> Response {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Homing</title><link rel=\"stylesheet\" \
         href=\"/page.css\"><main><h1>{title}</h1><p>{words}</p></main></html>"
    );
    let mut response = asset("text/html; charset=utf-8", body);
    *response.status_mut() = status;
    response
}

/// A page with one button, which sends what this address names back to it. Whoever only looks at the page, as programs do
/// that show links, has done nothing.
pub(crate) fn button_page(title: &str, words: &str, button: &str) -> Response {
    let form =
        format!("</p><form method=\"post\"><button type=\"submit\" autofocus>{button}</button></form><p>");
    let mut response = kind_page(StatusCode::OK, title, &format!("{words}{form}"));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(BUTTON_POLICY));
    // Without it a browser would not say that the button was pressed on our own page.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Words of somebody else, as HTML.
pub(crate) fn escape(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

fn asset(kind: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
