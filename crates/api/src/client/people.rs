//! One method per endpoint: people, groups, grants, directories, credentials, orgs, the audit.

use super::endpoints::{NO_BODY, NoQuery};
use super::{Client, ClientError};
use crate::*;
use reqwest::Method;

impl Client {
    /// Proves who somebody is; answers with a credential for the command line.
    pub async fn sign_in(&self, proof: &NewSignIn) -> Result<SignedIn, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/sign-in", Some(proof)).await?.body)
    }

    /// Makes the credential that this client uses good for nothing.
    pub async fn sign_out(&self) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/sign-out", NO_BODY).await?.body)
    }

    /// Changes what you are called.
    pub async fn change_me(&self, change: &MyChange) -> Result<Person, ClientError> {
        Ok(self.change(Method::PATCH, "/api/v1/me", Some(change)).await?.body)
    }

    /// Gives you another password.
    pub async fn set_password(&self, password: &NewPassword) -> Result<Done, ClientError> {
        Ok(self.change(Method::PUT, "/api/v1/me/password", Some(password)).await?.body)
    }

    /// A page of the org's people, in order of their handles.
    pub async fn people(&self, query: &PeopleQuery) -> Result<Page<Person>, ClientError> {
        self.get("/api/v1/users", query).await
    }

    /// Somebody.
    pub async fn person(&self, person: &str) -> Result<Person, ClientError> {
        self.get(&format!("/api/v1/users/{person}"), &NoQuery {}).await
    }

    /// Lets somebody in.
    pub async fn add_person(&self, person: &NewPerson) -> Result<AddedPerson, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/users", Some(person)).await?.body)
    }

    /// Changes somebody.
    pub async fn change_person(&self, person: &str, change: &PersonChange) -> Result<Person, ClientError> {
        Ok(self.change(Method::PATCH, &format!("/api/v1/users/{person}"), Some(change)).await?.body)
    }

    /// Shuts somebody out.
    pub async fn disable(&self, person: &str) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/users/{person}/disable"), NO_BODY).await?.body)
    }

    /// Lets somebody in again.
    pub async fn enable(&self, person: &str) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/users/{person}/enable"), NO_BODY).await?.body)
    }

    /// Makes a link by which somebody signs in, once.
    pub async fn make_link(&self, person: &str) -> Result<Link, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/users/{person}/link"), NO_BODY).await?.body)
    }

    /// Takes somebody's password away.
    pub async fn remove_password(&self, person: &str) -> Result<Done, ClientError> {
        self.take(&format!("/api/v1/users/{person}/password"), &NoQuery {}).await
    }

    /// Offers every session of somebody to somebody else; those of somebody who is disabled are the other's at once.
    pub async fn hand_over_all(&self, person: &str, to: &HandOver) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/users/{person}/hand-over"), Some(to)).await?.body)
    }

    /// The org's groups.
    pub async fn groups(&self) -> Result<Page<Group>, ClientError> {
        self.get("/api/v1/groups", &NoQuery {}).await
    }

    /// Makes a group.
    pub async fn make_group(&self, group: &NewGroup) -> Result<Group, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/groups", Some(group)).await?.body)
    }

    /// Removes a group, with all that was given to it.
    pub async fn remove_group(&self, group: &str) -> Result<Done, ClientError> {
        self.take(&format!("/api/v1/groups/{group}"), &NoQuery {}).await
    }

    /// Puts somebody into a group.
    pub async fn join(&self, group: &str, person: &str) -> Result<Membership, ClientError> {
        let path = format!("/api/v1/groups/{group}/people/{person}");
        Ok(self.change(Method::PUT, &path, NO_BODY).await?.body)
    }

    /// Takes somebody out of a group.
    pub async fn leave(&self, group: &str, person: &str) -> Result<Membership, ClientError> {
        self.take(&format!("/api/v1/groups/{group}/people/{person}"), &NoQuery {}).await
    }

    /// The grants on a session (`sessions/ID`) or an agent (`agents/NAME`).
    pub async fn grants(&self, on: &str) -> Result<Page<Granted>, ClientError> {
        self.get(&format!("/api/v1/{on}/grants"), &NoQuery {}).await
    }

    /// Gives something on a session or an agent.
    pub async fn give(&self, on: &str, grant: &NewGrant) -> Result<NewGrant, ClientError> {
        Ok(self.change(Method::PUT, &format!("/api/v1/{on}/grants"), Some(grant)).await?.body)
    }

    /// Takes something back on a session or an agent.
    pub async fn take_back(&self, on: &str, from: Grantee) -> Result<TakenBack, ClientError> {
        self.take(&format!("/api/v1/{on}/grants"), &GranteeQuery::from(from)).await
    }

    /// The offers of sessions to the caller, and those of their own sessions.
    pub async fn offers(&self) -> Result<Page<Offer>, ClientError> {
        self.get("/api/v1/offers", &NoQuery {}).await
    }

    /// Accepts a session that is offered to the caller.
    pub async fn accept_offer(&self, session: &str) -> Result<Done, ClientError> {
        let path = format!("/api/v1/sessions/{session}/hand-over/accept");
        Ok(self.change(Method::POST, &path, NO_BODY).await?.body)
    }

    /// Declines a session that is offered to the caller.
    pub async fn decline_offer(&self, session: &str) -> Result<Done, ClientError> {
        let path = format!("/api/v1/sessions/{session}/hand-over/decline");
        Ok(self.change(Method::POST, &path, NO_BODY).await?.body)
    }

    /// Takes the offer of a session back.
    pub async fn take_offer_back(&self, session: &str) -> Result<Done, ClientError> {
        self.take(&format!("/api/v1/sessions/{session}/hand-over"), &NoQuery {}).await
    }

    /// Offers a session to somebody else, whose it is when they accept.
    pub async fn hand_over(&self, session: &str, to: &HandOver) -> Result<Done, ClientError> {
        Ok(self.change(Method::POST, &format!("/api/v1/sessions/{session}/hand-over"), Some(to)).await?.body)
    }

    /// The directories that may be chosen, and by whom.
    pub async fn roots(&self) -> Result<Page<Root>, ClientError> {
        self.get("/api/v1/roots", &NoQuery {}).await
    }

    /// Lets a directory be chosen.
    pub async fn add_root(&self, root: &Root) -> Result<Root, ClientError> {
        Ok(self.change(Method::PUT, "/api/v1/roots", Some(root)).await?.body)
    }

    /// Lets it no more.
    pub async fn remove_root(&self, root: Root) -> Result<Root, ClientError> {
        self.take("/api/v1/roots", &RootQuery::from(root)).await
    }

    /// Credentials, the newest first.
    pub async fn tokens(&self, query: &TokensQuery) -> Result<Page<Token>, ClientError> {
        self.get("/api/v1/tokens", query).await
    }

    /// Makes a credential. Its secret is shown this one time.
    pub async fn make_token(&self, token: &NewToken) -> Result<MadeToken, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/tokens", Some(token)).await?.body)
    }

    /// Makes a credential good for nothing.
    pub async fn revoke_token(&self, token: &str) -> Result<Done, ClientError> {
        self.take(&format!("/api/v1/tokens/{token}"), &NoQuery {}).await
    }

    /// Every org on the machine.
    pub async fn orgs(&self) -> Result<Page<Org>, ClientError> {
        self.get("/api/v1/orgs", &NoQuery {}).await
    }

    /// Makes an org.
    pub async fn make_org(&self, org: &NewOrg) -> Result<MadeOrg, ClientError> {
        Ok(self.change(Method::POST, "/api/v1/orgs", Some(org)).await?.body)
    }

    /// Your org.
    pub async fn org(&self) -> Result<Org, ClientError> {
        self.get("/api/v1/org", &NoQuery {}).await
    }

    /// Changes what your org has decided.
    pub async fn change_org(&self, change: &OrgChange) -> Result<Org, ClientError> {
        Ok(self.change(Method::PATCH, "/api/v1/org", Some(change)).await?.body)
    }

    /// A page of the audit, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, ClientError> {
        self.get("/api/v1/audit", query).await
    }

    /// Checks the chain over the audit.
    pub async fn verify_audit(&self) -> Result<Verified, ClientError> {
        self.get("/api/v1/audit/verify", &NoQuery {}).await
    }

    /// The proof of the wall: the reach of an agent from inside.
    pub async fn wall(&self) -> Result<Wall, ClientError> {
        self.get("/api/v1/wall", &NoQuery {}).await
    }
}
