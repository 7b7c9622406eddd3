//! Requests to the provider: by HTTPS, or by HTTP on this machine's loopback; with bounds, and following no redirect.

use api::tls::{Trust, client_config};
use openidconnect::url::{Host, Url};
use openidconnect::{HttpRequest, HttpResponse};
use std::pin::Pin;
use std::time::Duration;

/// The longest that one answer of the provider may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The longest answer that we read. Metadata, keys and tokens take a few kilobytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Why there is no answer. Says nothing of what was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0} is not https, nor on this machine")]
    Plain(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("an answer without end")]
    TooLong,
}

/// The client for one provider.
#[derive(Debug, Clone)]
pub(super) struct ProviderHttp(reqwest::Client);

type HttpFuture = Pin<Box<dyn Future<Output = Result<HttpResponse, FetchError>> + Send>>;

impl ProviderHttp {
    pub(super) fn new(issuer: &str) -> Result<Self, FetchError> {
        let is_encrypted = issuer.starts_with("https://");
        let trust = if is_encrypted { Trust::Authorities { more: None } } else { Trust::Nobodys };
        let tls = client_config(&trust).map_err(FetchError::Unreachable)?;
        let mut builder = reqwest::Client::builder()
            .timeout(ANSWER_MAX)
            .tls_backend_preconfigured(tls)
            // A line that is kept may be closed from the other side just as we say something, and what we say there is not to be
            // said twice. People sign in so rarely that a new line each time costs nothing.
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none());
        // What is on this machine is asked directly, whatever the environment says about proxies.
        if Url::parse(issuer).is_ok_and(|url| is_here(&url)) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| FetchError::Unreachable(reason(&error)))?;
        Ok(Self(client))
    }

    /// As the protocol's library wants to be given it.
    pub(super) fn client(&self) -> impl Fn(HttpRequest) -> HttpFuture + use<> {
        let client = self.0.clone();
        move |request| Box::pin(fetch(client.clone(), request))
    }
}

async fn fetch(client: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, FetchError> {
    let unreachable = |error: &reqwest::Error| FetchError::Unreachable(reason(error));
    let (parts, body) = request.into_parts();
    let url = parts.uri.to_string();
    if !is_safe(&url) {
        return Err(FetchError::Plain(url));
    }
    let asked = client.request(parts.method, url).headers(parts.headers).body(body);
    let mut answer = asked.send().await.map_err(|error| unreachable(&error))?;
    let mut response = HttpResponse::new(Vec::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreachable(&error))? {
        if response.body().len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(FetchError::TooLong);
        }
        response.body_mut().extend_from_slice(&chunk);
    }
    Ok(response)
}

/// True if secrets may be sent there.
pub(super) fn is_safe(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || (url.scheme() == "http" && is_here(&url)))
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The last cause, which names the trouble; the others repeat the address.
fn reason(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_https_or_stay_on_this_machine() {
        for safe in [
            "https://id.example/a",
            "http://127.0.0.1:9/a",
            "http://127.8.0.1",
            "http://[::1]:9",
            "http://localhost:9",
        ] {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_one in [
            "http://id.example/a",
            "http://localhost.evil.example",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "",
            "x",
        ] {
            assert!(!is_safe(unsafe_one), "{unsafe_one}");
        }
    }
}
