//! The browser app, as it was built and committed: in the program, compressed, and the same for everybody.
//!
//! Its page is served at the address of each screen, and says below which hash its files are. What is below a hash never changes,
//! so browsers keep it. What the app shows it asks for with the browser's cookie; nothing here says anything about anybody.

use crate::problem::ApiError;
use api::Code;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, header};
use std::io::Read;

/// A file of the app.
struct PackedFile {
    /// Its media type.
    kind: &'static str,
    /// Its bytes, compressed.
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/browser_app.rs"));

/// The addresses of the screens. None has a directory in it.
pub(crate) const SCREENS: [&str; 18] = [
    "/",
    "/s/{id}",
    "/new",
    "/search",
    "/changes",
    "/approvals",
    "/worktrees",
    "/agents",
    "/people",
    "/groups",
    "/roots",
    "/offers",
    "/usage",
    "/audit",
    "/tokens",
    "/route",
    "/settings",
    "/sign-in",
];

/// Scripts, styles and everything else come from here and from nowhere else, nothing is written into the page as HTML, and nobody
/// frames it. For workers, too: theirs is what their own script is served with.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; font-src 'self'; worker-src 'self'; manifest-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types svelte-trusted-html homing-worker homing-push";
/// The program that shows notifications without a page. It is for everything below it, so it is at the top.
pub(crate) const WORKER: &str = "/service_worker.js";
/// A year: as long as anybody keeps anything.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// True if this is a screen of the app or a file of it, which nobody needs to be anybody for.
pub(crate) fn has(path: &str) -> bool {
    let is_session = path.strip_prefix("/s/").is_some_and(|id| !id.contains('/'));
    is_session || path.starts_with("/ui/") || path == WORKER || SCREENS.contains(&path)
}

/// The page at the address of each screen.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    PAGE.answer(&headers)
}

/// A file below the hash of this build. There is nothing below the hash of another one: a page that is older asks in vain, and says
/// so.
pub(crate) async fn file(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let found = FILES.iter().find(|(known, _)| hash == HASH && *known == name);
    let Some((_, file)) = found else {
        let detail = "this server has another version of the page: load it again";
        return ApiError::new(Code::NoSuchPath, detail).into_response();
    };
    let mut response = file.answer(&headers);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    response
}

/// The service worker, which browsers ask for again whenever they like: it is the one of this build.
pub(crate) async fn worker(headers: HeaderMap) -> Response {
    let found = FILES.iter().find(|(known, _)| WORKER.strip_prefix('/') == Some(known));
    let Some((_, file)) = found else {
        return ApiError::new(Code::NoSuchPath, "this build has no notifications").into_response();
    };
    let mut response = file.answer(&headers);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

impl PackedFile {
    /// Compressed for whoever takes that.
    fn answer(&self, asked: &HeaderMap) -> Response {
        let is_packed = takes_gzip(asked);
        let body = if is_packed { Bytes::from_static(self.gzip) } else { self.plain() };
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    fn plain(&self) -> Bytes {
        let mut plain = Vec::new();
        GzDecoder::new(self.gzip)
            .read_to_end(&mut plain)
            .expect("it was compressed when the program was built");
        Bytes::from(plain)
    }
}

/// True if whoever asks takes gzip: they name it, or anything, and not with a weight of nothing.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    let codings = lists.flat_map(|list| list.split(',')).map(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse::<f32>().ok());
        (name.trim().to_ascii_lowercase(), weight.is_some_and(|weight| weight > 0.0))
    });
    let codings: Vec<_> = codings.collect();
    let said = |wanted: &str| codings.iter().find(|(name, _)| name == wanted).map(|(_, takes)| *takes);
    said("gzip").or_else(|| said("x-gzip")).or_else(|| said("*")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, accept.parse().unwrap())])
    }

    #[test]
    fn gzip_goes_to_whoever_takes_it() {
        for takes in ["gzip", "br, gzip, deflate", "GZIP;q=0.5", "*", "identity;q=0, *;q=0.1", "x-gzip"] {
            assert!(takes_gzip(&asked(takes)), "{takes}");
        }
        for not in ["", "br", "gzip;q=0", "gzip; q=0.0, *", "identity", "*;q=0", "gzipped"] {
            assert!(!takes_gzip(&asked(not)), "{not}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_page_names_its_files_below_the_hash() {
        let page = String::from_utf8(PAGE.plain().to_vec()).unwrap();
        assert!(!page.contains('@'), "{page}");
        assert!(page.contains(&format!("/ui/{HASH}/app.js")), "{page}");
        for name in page.split(&format!("/ui/{HASH}/")).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(FILES.iter().any(|(known, _)| *known == name), "{name}");
        }
        // Nothing in it needs more than the policy grants.
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains("onload="), "{page}");
        assert!(page.split("<script").skip(1).all(|script| script.contains("src=")), "{page}");
    }

    #[test]
    fn every_page_of_the_app_has_its_address_here() {
        let routes = include_str!("../../../ui/src/pages/routes.ts");
        let pages: Vec<_> =
            routes.split("{ page: '").skip(1).map(|rest| rest.split('\'').next().unwrap()).collect();
        assert!(pages.len() > 10, "{pages:?}");
        for page in pages {
            assert!(has(&format!("/{page}")), "{page}");
        }
    }

    #[test]
    fn what_a_screen_is_is_known_by_its_address() {
        for is in ["/", "/s/ses_1", "/new", "/sign-in", "/ui/0123/app.js", "/service_worker.js"] {
            assert!(has(is), "{is}");
        }
        for not in [
            "/s/ses_1/more",
            "/api/v1/me",
            "/metrics",
            "/sign-in/",
            "/newer",
            "/in/x",
            "/ui",
            "/service_worker.js/x",
        ] {
            assert!(!has(not), "{not}");
        }
    }
}
