//! The browser app from outside: its page at each screen's address, its files below a hash, and what browsers are told about them.

use crate::world::World;
use http::header;
use reqwest::{Response, StatusCode};

/// Asks without any credential, and takes what is sent as it is.
async fn get(world: &World, path: &str, encoding: Option<&str>) -> Response {
    let ask = world.http.get(format!("{}{path}", world.url));
    match encoding {
        Some(encoding) => ask.header(header::ACCEPT_ENCODING, encoding).send().await.unwrap(),
        None => ask.send().await.unwrap(),
    }
}

fn head<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The path of the app's script, as the page names it.
async fn script_of(world: &World) -> String {
    let page = get(world, "/", None).await.text().await.unwrap();
    let (_, rest) = page.split_once("src=\"").expect("the page has a script");
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn the_page_is_at_each_screens_address_and_asks_for_its_files_below_a_hash() {
    let world = World::new().await;
    let page = get(&world, "/", None).await.text().await.unwrap();
    assert!(!page.contains("/ui/@/"), "{page}");
    for screen in [
        "/",
        "/s/ses_anything",
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
    ] {
        let answer = get(&world, screen, None).await;
        assert_eq!(answer.status(), StatusCode::OK, "{screen}");
        assert_eq!((head(&answer, "cache-control"), head(&answer, "content-encoding")), ("no-store", ""));
        let policy = head(&answer, "content-security-policy");
        for part in ["default-src 'none'", "script-src 'self';", "require-trusted-types-for 'script'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.text().await.unwrap(), page, "{screen}");
    }
    for other in ["/s/", "/s/a/b", "/sessions", "/new/", "/index.html", "/ui/app.js"] {
        let status = get(&world, other, None).await.status();
        assert!(matches!(status.as_u16(), 401 | 404), "{other}: {status}");
    }
    let wrong = world.http.post(format!("{}/settings", world.url)).send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_file_below_the_hash_is_kept_for_ever_and_comes_as_it_was_asked_for() {
    let world = World::new().await;
    let script = script_of(&world).await;
    let plain = get(&world, &script, None).await;
    assert_eq!((head(&plain, "content-encoding"), head(&plain, "vary")), ("", "accept-encoding"));
    assert_eq!(head(&plain, "content-type"), "text/javascript; charset=utf-8");
    assert_eq!(head(&plain, "cache-control"), "public, max-age=31536000, immutable");
    assert!(
        head(&plain, "content-security-policy").contains("trusted-types svelte-trusted-html homing-worker")
    );
    let plain = plain.bytes().await.unwrap();
    for (asked, encoding) in [("gzip", "gzip"), ("br, gzip;q=0.1", "gzip"), ("br", ""), ("gzip;q=0", "")] {
        let answer = get(&world, &script, Some(asked)).await;
        assert_eq!(head(&answer, "content-encoding"), encoding, "{asked}");
        assert_eq!(
            head(&answer, "content-length").parse::<usize>().unwrap(),
            answer.bytes().await.unwrap().len()
        );
    }
    let packed = get(&world, &script, Some("gzip")).await.bytes().await.unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]) && packed.len() < plain.len() / 2, "{} bytes", packed.len());
    // A page that is older than the server asks for what is not there any more, and is not told to keep that.
    let (_, name) = script.rsplit_once('/').unwrap();
    for gone in [
        format!("/ui/0123456789abcdef/{name}"),
        script.replace(name, "none.js"),
        script.replace(name, "index.html"),
    ] {
        let answer = get(&world, &gone, None).await;
        assert_eq!(
            (answer.status(), head(&answer, "cache-control")),
            (StatusCode::NOT_FOUND, "no-store"),
            "{gone}"
        );
        assert!(answer.text().await.unwrap().contains("no_such_path"));
    }
}
