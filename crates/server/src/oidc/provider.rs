//! The provider itself: what it says of itself, sending a browser there, and turning the code it comes back with into
//! somebody. Everything that crosses the network does so here.

use super::fetch::{FetchError, ProviderHttp, is_safe};
use super::identity::{Claims, ProviderIdentity, judge};
use super::pending::PendingSignIn;
use super::{OidcConfig, SignInFailure};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient, CoreClientAuthMethod,
    CoreGenderClaim, CoreGrantType, CoreIdToken, CoreIdTokenClaims, CoreIdTokenVerifier, CoreJsonWebKey,
    CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
    CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
    CoreTokenResponse,
};
use openidconnect::{
    AccessToken, AdditionalProviderMetadata, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId,
    ClientSecret, CsrfToken, EmptyAdditionalClaims, EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl,
    JsonWebKeySet, Nonce, OAuth2TokenResponse, PkceCodeChallenge, ProviderMetadata, RedirectUrl, Scope,
    SignatureVerificationError, TokenResponse, UserInfoClaims,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The time for which the provider's metadata is taken for true. Its keys are asked for again whenever they do not fit.
const METADATA_MAX: Duration = Duration::from_secs(60 * 60);
/// Random bytes in `state` and in the nonce.
const RANDOM_BYTES: u32 = 32;

/// Only signatures that nobody can make but the provider: no shared secret, and not none at all.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

type Metadata = ProviderMetadata<
    ExtraMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The part of the metadata that we read and the library does not know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ExtraMetadata {
    /// True if the provider names itself when it sends a browser back.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for ExtraMetadata {}

/// The one provider that is configured.
pub(super) struct Provider {
    config: OidcConfig,
    fetch: ProviderHttp,
    known: Mutex<Option<CachedMetadata>>,
}

#[derive(Clone)]
struct CachedMetadata {
    metadata: Arc<Metadata>,
    keys: Arc<CoreJsonWebKeySet>,
    since: Instant,
}

/// A sign-in that is about to begin: where the browser goes, and what to keep meanwhile.
pub(super) struct AuthorizationRequest {
    pub(super) url: String,
    pub(super) state: String,
    pub(super) waiting: PendingSignIn,
}

impl Provider {
    pub(super) fn new(config: OidcConfig) -> Result<Self, FetchError> {
        if !is_safe(&config.issuer) {
            return Err(FetchError::Plain(config.issuer));
        }
        Ok(Self { fetch: ProviderHttp::new(&config.issuer)?, config, known: Mutex::new(None) })
    }

    pub(super) fn config(&self) -> &OidcConfig {
        &self.config
    }

    /// Where to send a browser that is to come back to `redirect`.
    pub(super) async fn begin(&self, redirect: String) -> Result<AuthorizationRequest, SignInFailure> {
        let known = self.known().await?;
        let client = self.client(&known, &redirect)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (url, state, nonce) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new_random_len(RANDOM_BYTES),
                || Nonce::new_random_len(RANDOM_BYTES),
            )
            .add_scopes(["email", "profile"].map(|scope| Scope::new(scope.to_owned())))
            .set_pkce_challenge(challenge)
            .url();
        let waiting = PendingSignIn { nonce, verifier, redirect };
        Ok(AuthorizationRequest { url: url.to_string(), state: state.into_secret(), waiting })
    }

    /// Checks that whoever sent the browser back is the provider we sent it to. With one provider nobody could be mixed
    /// up with it, but a stolen code of another one is told apart here, before it is sent anywhere.
    pub(super) async fn check_sender(&self, named: Option<&str>) -> Result<(), SignInFailure> {
        let known = self.known().await?;
        let names_itself = known.metadata.additional_metadata();
        match named {
            Some(issuer) if issuer == self.config.issuer => Ok(()),
            None if !names_itself.authorization_response_iss_parameter_supported => Ok(()),
            _ => Err(SignInFailure::Untrusted(
                "somebody else than the provider sent the browser back".to_owned(),
            )),
        }
    }

    /// The person who came back with this code.
    pub(super) async fn finish(
        &self,
        code: String,
        waiting: PendingSignIn,
    ) -> Result<ProviderIdentity, SignInFailure> {
        let known = self.known().await?;
        let client = self.client(&known, &waiting.redirect)?;
        let answer = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| SignInFailure::Unreachable(error.to_string()))?
            .set_pkce_verifier(waiting.verifier)
            .request_async(&self.fetch.client())
            .await
            .map_err(token_failure)?;
        let token = id_token(&answer)?;
        let claims = match self.verify(token, &known.keys, &waiting.nonce) {
            Err(NotVerified::Key(why)) => {
                tracing::info!(why, "the provider's keys do not fit; asking for them again");
                let keys = self.fresh_keys().await?;
                self.verify(token, &keys, &waiting.nonce)
            }
            verified => verified,
        };
        let claims = claims.map_err(|why| SignInFailure::Untrusted(why.to_string()))?;
        let claims = self.with_email(&client, answer.access_token(), claims).await?;
        judge(&self.config, claims)
    }

    fn verify<'t>(
        &self,
        token: &'t CoreIdToken,
        keys: &CoreJsonWebKeySet,
        nonce: &Nonce,
    ) -> Result<&'t CoreIdTokenClaims, NotVerified> {
        let (client, issuer) = (ClientId::new(self.config.client_id.clone()), self.issuer());
        let issuer = issuer.map_err(|_| NotVerified::Other("the issuer is no address".to_owned()))?;
        let verifier = CoreIdTokenVerifier::new_public_client(client.clone(), issuer, keys.clone())
            .set_allowed_algs(ALGORITHMS);
        let claims = token.claims(&verifier, nonce).map_err(NotVerified::from)?;
        // The library leaves this one to us.
        if claims.authorized_party().is_some_and(|party| *party != client) {
            return Err(NotVerified::Other("the token was made for another client".to_owned()));
        }
        Ok(claims)
    }

    /// The claims of the token; its e-mail address is asked for where the token has none.
    async fn with_email(
        &self,
        client: &Client,
        access: &AccessToken,
        claims: &CoreIdTokenClaims,
    ) -> Result<Claims, SignInFailure> {
        let text = |words: Option<&str>| words.map(str::to_owned);
        let mut found = Claims {
            subject: claims.subject().to_string(),
            email: text(claims.email().map(|email| email.as_str())),
            email_verified: claims.email_verified() == Some(true),
            name: text(claims.name().and_then(|name| name.get(None)).map(|name| name.as_str())),
            nickname: text(claims.preferred_username().map(|name| name.as_str())),
        };
        if found.email.is_some() {
            return Ok(found);
        }
        // A provider without this endpoint has no more to say.
        let Ok(request) = client.user_info(access.clone(), Some(claims.subject().clone())) else {
            return Ok(found);
        };
        let more: UserInfoClaims<EmptyAdditionalClaims, CoreGenderClaim> =
            request.request_async(&self.fetch.client()).await.map_err(|error| {
                SignInFailure::Unreachable(format!("it did not say more about somebody: {error}"))
            })?;
        found.email = text(more.email().map(|email| email.as_str()));
        found.email_verified = more.email_verified() == Some(true);
        found.name = found
            .name
            .or_else(|| text(more.name().and_then(|name| name.get(None)).map(|name| name.as_str())));
        found.nickname = found.nickname.or_else(|| text(more.preferred_username().map(|name| name.as_str())));
        Ok(found)
    }

    fn client(&self, known: &CachedMetadata, redirect: &str) -> Result<Client, SignInFailure> {
        let redirect = RedirectUrl::new(redirect.to_owned()).map_err(|error| {
            SignInFailure::Unreachable(format!("our own address {redirect} is none: {error}"))
        })?;
        let secret = self.config.client_secret.clone().map(ClientSecret::new);
        let id = ClientId::new(self.config.client_id.clone());
        let client =
            Client::from_provider_metadata((*known.metadata).clone(), id, secret).set_redirect_uri(redirect);
        let methods = known.metadata.token_endpoint_auth_methods_supported();
        let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
        let in_the_body =
            !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
        Ok(if in_the_body { client.set_auth_type(AuthType::RequestBody) } else { client })
    }

    fn issuer(&self) -> Result<IssuerUrl, SignInFailure> {
        IssuerUrl::new(self.config.issuer.clone())
            .map_err(|error| SignInFailure::Unreachable(error.to_string()))
    }

    /// The provider's metadata. Whoever comes first asks; the others wait for the same answer.
    async fn known(&self) -> Result<CachedMetadata, SignInFailure> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.since.elapsed() < METADATA_MAX) {
            return Ok(known.clone());
        }
        // The library compares the issuer that is named there with the one that we asked.
        let metadata = Metadata::discover_async(self.issuer()?, &self.fetch.client())
            .await
            .map_err(|error| SignInFailure::Unreachable(said(&error)))?;
        if !is_safe(metadata.authorization_endpoint().as_str()) {
            return Err(SignInFailure::Unreachable(
                "it would have people type their passwords without TLS".to_owned(),
            ));
        }
        let keys = Arc::new(metadata.jwks().clone());
        let fresh = CachedMetadata { metadata: Arc::new(metadata), keys, since: Instant::now() };
        Ok(known.insert(fresh).clone())
    }

    /// The provider's keys as they are now. Only somebody whose code the provider took gets us to ask.
    async fn fresh_keys(&self) -> Result<Arc<CoreJsonWebKeySet>, SignInFailure> {
        let known = self.known().await?;
        let keys = JsonWebKeySet::fetch_async(known.metadata.jwks_uri(), &self.fetch.client())
            .await
            .map_err(|error| SignInFailure::Unreachable(said(&error)))?;
        let keys = Arc::new(keys);
        if let Some(known) = self.known.lock().await.as_mut() {
            known.keys = keys.clone();
        }
        Ok(keys)
    }
}

fn id_token(answer: &CoreTokenResponse) -> Result<&CoreIdToken, SignInFailure> {
    answer.id_token().ok_or_else(|| SignInFailure::Untrusted("the provider sent no ID token".to_owned()))
}

/// Why a token does not count.
#[derive(Debug, thiserror::Error)]
enum NotVerified {
    /// By the keys that we know. There may be others by now.
    #[error("{0}")]
    Key(String),
    /// Whatever its keys.
    #[error("{0}")]
    Other(String),
}

impl From<ClaimsVerificationError> for NotVerified {
    fn from(error: ClaimsVerificationError) -> Self {
        use SignatureVerificationError::{AmbiguousKeyId, CryptoError, NoMatchingKey};
        let words = said(&error);
        match error {
            ClaimsVerificationError::SignatureVerification(
                NoMatchingKey | CryptoError(_) | AmbiguousKeyId(_),
            ) => Self::Key(words),
            _ => Self::Other(words),
        }
    }
}

type TokenError = openidconnect::RequestTokenError<
    FetchError,
    openidconnect::StandardErrorResponse<openidconnect::core::CoreErrorResponseType>,
>;

/// A code that the provider does not take was used before, is too old, or is not ours; none of it is its fault.
fn token_failure(error: TokenError) -> SignInFailure {
    match error {
        TokenError::ServerResponse(refusal) => {
            SignInFailure::Untrusted(format!("the provider did not take the code: {refusal}"))
        }
        TokenError::Request(error) => SignInFailure::Unreachable(said(&error)),
        // Its words may have a token in them, so they are not repeated.
        TokenError::Parse(..) => {
            SignInFailure::Untrusted("the provider's answer could not be read".to_owned())
        }
        TokenError::Other(why) => SignInFailure::Untrusted(why),
    }
}

/// An error with its causes.
fn said(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
