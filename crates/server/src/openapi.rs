//! The contract: which paths there are, made from the handlers themselves, and the problems each may answer with.

use crate::door::SharedDoor;
use crate::extract::json_bytes;
use crate::problem::ApiError;
use crate::{
    agents, approvals, attachments, audit, bindings, browser_app, browser_stream, doctor, export_import,
    facts, grants, groups, heads, health, link_page, lookups, marks, me, messages, middleware, nodes, orgs,
    outbox, pushes, queue, roots, route, scope, search, sessions, sign_in, tokens, turns, usage, users, wall,
    worktrees,
};
use api::Code;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{IntoParams, Modify, OpenApi as _, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

/// Problems that any request may be answered with, whatever it wants.
const EVERYWHERE: [Code; 6] = [
    Code::TokenInQuery,
    Code::Unauthenticated,
    Code::BadOrigin,
    Code::BadHost,
    Code::TooManyRequests,
    Code::Unavailable,
];

/// Names the sets of problems that operations of a file may answer with, besides those that any may.
macro_rules! problems {
    ($($name:ident = [$($code:ident),* $(,)?];)*) => {$(
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::response::Response>,
            > {
                $crate::openapi::problem_responses(&[$(api::Code::$code),*])
            }
        }
    )*};
}
pub(crate) use problems;

/// The responses that document these codes, one per status.
pub(crate) fn problem_responses(
    codes: &[Code],
) -> BTreeMap<String, RefOr<utoipa::openapi::response::Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in EVERYWHERE.iter().chain(codes) {
        by_status.entry(code.status()).or_default().push(*code);
    }
    let response = |codes: Vec<Code>| {
        let lines = codes.iter().map(|code| format!("`{}`: {}", code.word(), code.title()));
        let schema = Ref::from_schema_name(api::Problem::name());
        ResponseBuilder::new()
            .description(lines.collect::<Vec<_>>().join("; "))
            .content("application/problem+json", ContentBuilder::new().schema(Some(schema)).build())
            .build()
    };
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(codes).into())).collect()
}

/// The header that makes a repetition harmless.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct KeyHeader {
    /// Your own name for this very request. The same key with the same content is the same request, for 30 days; with
    /// another content it is a 409 `idempotency_conflict`.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$"
    )]
    key: Option<String>,
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Homing",
        version = "1",
        description = "Every message finds its own session.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(
        api::Problem, api::Live, api::BrowserBegan, api::BrowserSession, api::BrowserGone, api::BrowserFact, api::BrowserLive,
        api::BrowserProgress, api::BrowserReadiness
    )),
    security(("token" = []), ("cookie" = [])),
    modifiers(&SecuritySchemes),
)]
struct Contract;

struct SecuritySchemes;

impl Modify for SecuritySchemes {
    fn modify(&self, openapi: &mut OpenApi) {
        let Some(components) = openapi.components.as_mut() else { return };
        let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let cookie = ApiKeyValue::with_description(
            "homing_4747",
            "What the one-time sign-in link leaves in a browser; the number is the server's port.",
        );
        components.add_security_scheme("token", token);
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// Requests with several forms are objects in each of them; said once more where readers of schemas look first.
fn say_object(mut contract: OpenApi) -> OpenApi {
    let Some(components) = contract.components.as_mut() else { return contract };
    for name in [
        api::To::name(),
        api::NewMessage::name(),
        api::MessageChange::name(),
        api::Grantee::name(),
        api::NewSignIn::name(),
    ] {
        if let Some(RefOr::T(Schema::OneOf(forms))) = components.schemas.get_mut(&*name) {
            forms.schema_type = SchemaType::Type(Type::Object);
        }
    }
    contract
}

/// Each line of an export says what it is beside what it holds, so that what it holds cannot be all there is.
fn let_lines_be_named(mut contract: OpenApi) -> OpenApi {
    let Some(components) = contract.components.as_mut() else { return contract };
    for name in [api::ExportHeader::name(), api::ExportTurn::name(), api::ExportEnd::name()] {
        if let Some(RefOr::T(Schema::Object(line))) = components.schemas.get_mut(&*name) {
            line.additional_properties = None;
        }
    }
    contract
}

/// Marks that say nothing are none.
fn bound_marks(mut contract: OpenApi) -> OpenApi {
    let Some(components) = contract.components.as_mut() else { return contract };
    if let Some(RefOr::T(Schema::Object(marks))) = components.schemas.get_mut(&*api::MarksChange::name()) {
        marks.min_properties = Some(1);
    }
    contract
}

/// An answer is one of its forms, and no two at once; the options of a question are few, and words are some.
fn bound_answers(mut contract: OpenApi) -> OpenApi {
    let Some(components) = contract.components.as_mut() else { return contract };
    let Some(RefOr::T(Schema::OneOf(forms))) = components.schemas.get_mut(&*api::Answer::name()) else {
        return contract;
    };
    for form in &mut forms.items {
        let RefOr::T(Schema::Object(form)) = form else { continue };
        if form.properties.is_empty() {
            continue;
        }
        form.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        if let Some(RefOr::T(Schema::Object(number))) = form.properties.get_mut("chose") {
            number.maximum = Some(usize::from(u16::MAX).into());
        }
        if let Some(RefOr::T(Schema::Object(words))) = form.properties.get_mut("said") {
            (words.min_length, words.pattern) = (Some(1), Some("\\S".to_owned()));
        }
    }
    contract
}

/// Every path of the interface with its operations, each made when it is asked for: what describes an operation takes far
/// more memory than what answers it, and a server needs one of the two.
const PATHS: &[fn() -> UtoipaMethodRouter<SharedDoor>] = &[
    || routes!(messages::say),
    || routes!(messages::receipt, messages::change, messages::withdraw),
    || routes!(messages::stop),
    || routes!(attachments::attachment),
    || routes!(sessions::list, sessions::make),
    || routes!(sessions::counts),
    || routes!(search::search),
    || routes!(usage::usage),
    || routes!(sessions::read, sessions::change),
    || routes!(sessions::end),
    || routes!(marks::mark),
    || routes!(sessions::stop_background),
    || routes!(scope::change, scope::keep),
    || routes!(scope::undo, scope::preview_undo),
    || routes!(scope::redo),
    || routes!(scope::fork),
    || routes!(export_import::export),
    || routes!(export_import::import),
    || routes!(scope::changes),
    || routes!(scope::file_changes),
    || routes!(scope::readiness),
    || routes!(lookups::commands),
    || routes!(lookups::models),
    || routes!(lookups::files),
    || routes!(lookups::directories),
    || routes!(worktrees::list),
    || routes!(worktrees::collect),
    || routes!(worktrees::changes),
    || routes!(worktrees::file_changes),
    || routes!(worktrees::remove),
    || routes!(worktrees::restore),
    || routes!(worktrees::merge),
    || routes!(worktrees::apply),
    || routes!(facts::facts),
    || routes!(turns::turns),
    || routes!(heads::heads),
    || routes!(browser_stream::stream),
    || routes!(queue::queue, queue::reorder),
    || routes!(bindings::list),
    || routes!(bindings::rebind),
    || routes!(outbox::list),
    || routes!(outbox::retry),
    || routes!(outbox::remove),
    || routes!(route::explain),
    || routes!(agents::list),
    || routes!(agents::account, agents::set_account, agents::remove_account),
    || routes!(nodes::list),
    || routes!(nodes::program),
    || routes!(doctor::doctor),
    || routes!(approvals::list),
    || routes!(approvals::read, approvals::answer),
    || routes!(approvals::rules, approvals::add_rule),
    || routes!(approvals::remove_rule),
    || routes!(sign_in::ways, sign_in::sign_in),
    || routes!(sign_in::sign_out),
    || routes!(me::me, me::change),
    || routes!(me::set_password),
    || routes!(pushes::list, pushes::set),
    || routes!(pushes::remove),
    || routes!(users::list, users::add),
    || routes!(users::read, users::change),
    || routes!(users::disable),
    || routes!(users::enable),
    || routes!(users::link),
    || routes!(users::remove_password),
    || routes!(users::hand_over),
    || routes!(groups::list, groups::make),
    || routes!(groups::remove),
    || routes!(groups::join, groups::leave),
    || routes!(grants::list, grants::give, grants::take_back),
    || routes!(grants::hand_over, grants::take_offer_back),
    || routes!(grants::accept_offer),
    || routes!(grants::decline_offer),
    || routes!(grants::offers),
    || routes!(grants::agent_list, grants::agent_give, grants::agent_take_back),
    || routes!(roots::list, roots::add, roots::remove),
    || routes!(tokens::list, tokens::make),
    || routes!(tokens::revoke),
    || routes!(orgs::list, orgs::make),
    || routes!(orgs::read, orgs::change),
    || routes!(audit::list),
    || routes!(audit::verify),
    || routes!(wall::wall),
    || routes!(health::healthz),
    || routes!(health::readyz),
    || routes!(health::metrics),
];

/// Every path of the interface. What describes it is let go, path by path: `CONTRACT` has it.
pub(crate) fn routes() -> Router<SharedDoor> {
    PATHS.iter().fold(Router::new(), |router, path| {
        let (_, described, methods) = path();
        let path = described.paths.keys().next().expect("an operation has a path");
        router.route(path, methods)
    })
}

/// The OpenAPI 3.1 document, made from the handlers themselves.
pub fn document() -> OpenApi {
    let contract = OpenApiRouter::with_openapi(Contract::openapi());
    let contract = PATHS.iter().fold(contract, |contract, path| contract.routes(path()));
    bound_marks(bound_answers(let_lines_be_named(say_object(contract.into_openapi()))))
}

/// The document as it is committed; a test compares it with `document`.
const CONTRACT: &str = include_str!("../../../docs/openapi.json");

/// Adds what is not part of the interface (the browser app, the document itself), and the gate in front of everything.
pub(crate) fn finish(router: Router<SharedDoor>, door: &SharedDoor) -> Router {
    let router = browser_app::SCREENS
        .iter()
        .fold(router, |router, screen| router.route(screen, get(browser_app::page)));
    router
        .route("/api/v1/openapi.json", get(contract))
        .route("/page.css", get(link_page::style))
        .route(browser_app::WORKER, get(browser_app::worker))
        .route("/ui/{hash}/{*name}", get(browser_app::file))
        .route("/in/{code}", get(sign_in::look).post(sign_in::spend))
        .route("/in/oidc", get(sign_in::provider::go))
        .route("/in/oidc/back", get(sign_in::provider::back))
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown_path)
        .layer(axum::middleware::from_fn_with_state(door.clone(), middleware::middleware))
        .with_state(door.clone())
}

async fn contract() -> Response {
    json_bytes(StatusCode::OK, bytes::Bytes::from_static(CONTRACT.as_bytes()))
}

async fn unknown_path() -> Response {
    ApiError::new(Code::NoSuchPath, "there is nothing at this path").into_response()
}

async fn wrong_method() -> Response {
    ApiError::new(Code::MethodNotAllowed, "this path does not know this method").into_response()
}
