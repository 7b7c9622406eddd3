//! The rules about people: who may change who may do what, what refuses such a change, and what it consists of.
//!
//! A change is *read, plan, write* in one transaction of the store. `change` has what can be asked for; `reads_of` names the
//! rows that a change is judged by, `plan_change` turns them into a plan or a refusal, and the store applies the plan as it
//! is. Read `change` and `rows` (the data), `may` (who may), `plan` (everything else that refuses, and the writes), then
//! `sign_in` (what lets somebody in). No rule about people stands anywhere else.

mod change;
mod may;
mod plan;
mod rows;
mod sign_in;

pub use change::{
    HeirLimits, NewLink, NewOrg, NewPerson, NewToken, OfferRow, OrgSettings, PeopleChange, Purpose, Resource,
    RootRow, RuleEffect, RuleRow, TokenRow, is_fresh, name_key,
};
pub use may::{PeopleRefusal, may_ask, may_change};
pub use plan::{OFFER_MS_MAX, OWNERS_MIN, RULES_MAX, plan_change, rule_writes};
pub use rows::{
    ChangeReads, ChangeRows, HeirRoom, LinksToDrop, OffersToDrop, OwnCredential, PeoplePlan, PeopleWrite,
    PersonState, RuleState, SessionState, TokenHolder, TokensToDrop, Touched, reads_of,
};
pub use sign_in::{
    CredentialState, HostState, LinkState, add_token, come_in, lets_in, link_lets_in, make_host,
    rotate_token, spend_link,
};
