//! `/tokens`: access tokens, for administrators. The secret is shown once; only its digest is kept.

use api::{CreateToken, ProblemCode, Role, TokenCreated, TokenList, TokenRevoked};
use domain::Timestamp;
use engine::{Engine, Ids};
use store::{StoreError, Token};

use crate::access::authorise::{EXEC_SCOPE, SCOPES};
use crate::access::secret::Secret;
use crate::clock_text::text;
use crate::problem::{at, at_field, of_store};
use crate::{Reply, RequestContext, Result, Server};

/// Makes the first administrator's token if there is no token at all, and gives its secret to whoever starts the daemon.
pub async fn first_admin(engine: &Engine) -> Result<Option<Secret>, StoreError> {
    if !engine.store().tokens().await?.is_empty() {
        return Ok(None);
    }
    let secret = Secret::generate().map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let asked = CreateToken {
        name: "first administrator".to_owned(),
        role: Role::Admin,
        scopes: vec![EXEC_SCOPE.to_owned()],
        circle: None,
        peer_id: None,
    };
    let token = new_token(engine.ids(), &secret, asked, engine.clock().now());
    engine.store().keep_token(token).await?;
    Ok(Some(secret))
}

pub(crate) async fn create(server: &Server, asked: RequestContext) -> Result<Reply> {
    if asked.key.is_some() {
        return Err(ProblemCode::InvalidIdempotencyKey.because(
            "a secret is shown once and never kept, so this request cannot be repeated under a key",
        ));
    }
    let sent: CreateToken = asked.read()?;
    check(&sent)?;
    let secret = Secret::generate()
        .map_err(|_| ProblemCode::Internal.because("the machine gives no randomness for a secret"))?;
    let engine = server.daemon.engine();
    let token = new_token(engine.ids(), &secret, sent, server.now());
    server.store().keep_token(token.clone()).await.map_err(of_store)?;
    tracing::info!(target: "audit", actor = &*asked.principal.actor, token = token.id, "token made");
    Ok(Reply::json(&TokenCreated { token: shown(token), secret: secret.reveal().to_owned() }))
}

pub(crate) async fn list(server: &Server) -> Result<Reply> {
    let tokens = server.store().tokens().await.map_err(of_store)?;
    Ok(Reply::json(&TokenList { tokens: tokens.into_iter().map(shown).collect() }))
}

pub(crate) async fn revoke(server: &Server, asked: RequestContext) -> Result<Reply> {
    let revoked = server.store().revoke_token(&asked.id, server.now()).await;
    // Also when it failed: what was remembered is looked up again.
    server.gate.forget();
    if !revoked.map_err(of_store)? {
        return Err(ProblemCode::NotFound.because(format!("No token: {}", asked.id)));
    }
    tracing::info!(target: "audit", actor = &*asked.principal.actor, token = asked.id, "token revoked");
    Ok(Reply::json(&TokenRevoked { id: asked.id, revoked: true }))
}

fn check(sent: &CreateToken) -> Result<()> {
    if let Some((index, unknown)) =
        sent.scopes.iter().enumerate().find(|(_, scope)| !SCOPES.contains(&scope.as_str()))
    {
        let told = format!("there is no scope {unknown:?}; known scopes: {}", SCOPES.join(", "));
        let loc = ["body", "scopes", &*index.to_string()];
        return Err(at(ProblemCode::InvalidRequest, "literal_error", &loc, told));
    }
    if matches!(sent.role, Role::Peer | Role::Agent) && sent.circle.is_none() {
        let told = "a token for a peer or an agent needs the circle that it works in";
        return Err(at_field("circle", "missing", told));
    }
    let empty = [("circle", &sent.circle), ("peer_id", &sent.peer_id)]
        .into_iter()
        .find(|(_, text)| text.as_deref() == Some(""));
    if let Some((field, _)) = empty {
        let told = format!("{field} must not be empty; leave it out instead");
        return Err(at_field(field, "value_error", told));
    }
    Ok(())
}

fn new_token(ids: &dyn Ids, secret: &Secret, asked: CreateToken, now: Timestamp) -> Token {
    Token {
        id: format!("token-{:032x}", ids.next()),
        sha256: secret.sha256(),
        name: asked.name,
        role: asked.role.as_str().to_owned(),
        scopes: asked.scopes,
        circle: asked.circle,
        peer_id: asked.peer_id,
        created_at: now,
        revoked_at: None,
    }
}

fn shown(token: Token) -> api::Token {
    api::Token {
        id: token.id,
        name: token.name,
        role: token.role,
        scopes: token.scopes,
        circle: token.circle,
        peer_id: token.peer_id,
        created_at: text(token.created_at),
        revoked_at: token.revoked_at.map(text),
    }
}
