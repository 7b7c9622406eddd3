//! Targets: made once for everybody who only looks at it, and anew for whoever changes it.

use super::callers::{Caller, Place};
use super::rows::{Names, Row};
use super::rule::{Agent, Bound, Spot, Stands, Target, Which, Whom};
use crate::town::{Busy, Town, small_image};
use crate::world::{Somebody, trace};
use engine::{IfNew, NewRule, PersonChange, Purpose, Resource, RootRow, RuleEffect};
use kernel::{
    ApprovalId, Change, Grant, Grantee, GroupId, MessageId, PersonId, Request, Right, Rights, Role, RuleId,
    SessionId, Setting, To, TokenId, Turn,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// The agents besides the usual ones.
pub(super) const ALIASES: [&str; 4] = ["closed", "looked", "lent", "spare"];
/// A directory that everybody may choose.
const ROOT: &str = "/srv/town";

/// Things that are made by whoever needs them first.
type Once<K, V> = Mutex<HashMap<K, Arc<OnceCell<V>>>>;

pub(super) struct Scene<'a> {
    pub(super) town: &'a Town,
    pub(super) places: &'a [Place],
    shared: Once<(PersonId, Spot), Names>,
    people: Once<(usize, Role), Somebody>,
    used: AtomicU64,
}

impl<'a> Scene<'a> {
    pub(super) async fn new(town: &'a Town, places: &'a [Place]) -> Self {
        let first = &places[0];
        let by = town.now(&first.owner).await;
        let giver = Grantee::Person(first.giver.by.person);
        let doors = [
            ("closed", giver, Grant::Prompt),
            ("looked", Grantee::Org, Grant::View),
            ("lent", Grantee::Org, Grant::Prompt),
        ];
        for (agent, to, grant) in doors {
            let on = Resource::Agent(agent.to_owned());
            town.engine.people().give(&by, on, to, grant, trace()).await.unwrap();
        }
        for place in places {
            let root = RootRow { directory: ROOT.to_owned(), to: Grantee::Org };
            town.engine.people().add_root(&town.now(&place.owner).await, root, trace()).await.unwrap();
        }
        let (shared, people) = (Mutex::default(), Mutex::default());
        Self { town, places, shared, people, used: AtomicU64::new(0) }
    }

    /// Nothing is handed over to a viewer: whoever is one and owns a session was more when they got it.
    pub(super) async fn endow(&self, viewer: &Caller) {
        self.make(viewer, Role::Member).await;
        for stands in [Stands::Own, Stands::OwnOfClosedAgent] {
            for ended in [false, true] {
                let spot = Spot { stands, ended, mine: false };
                let names = Arc::new(OnceCell::from(self.session(viewer, spot).await));
                self.shared.lock().unwrap().insert((viewer.person.by.person, spot), names);
            }
        }
        self.make(viewer, Role::Viewer).await;
    }

    async fn make(&self, caller: &Caller, role: Role) {
        let by = self.town.now(&self.places[caller.place].owner).await;
        let to = PersonChange { role: Some(role), ..PersonChange::default() };
        self.town.engine.people().change_person(&by, caller.person.by.person, to, trace()).await.unwrap();
    }

    /// A name that nobody has used.
    pub(super) fn fresh(&self) -> String {
        format!("fresh-{}", self.used.fetch_add(1, Ordering::Relaxed))
    }

    /// An id that nobody has.
    fn nobody(&self) -> u128 {
        (7 << 100) + u128::from(self.used.fetch_add(1, Ordering::Relaxed))
    }

    /// The names that the request is made of. Whatever is changed is made for it alone.
    pub(super) async fn names(&self, row: &Row, caller: &Caller, target: Target, alone: bool) -> Names {
        let place = &self.places[caller.place];
        let mut names = match target {
            Target::Session(spot) if alone || caller.is.bound == Bound::Here => {
                self.session(caller, spot).await
            }
            Target::Session(spot) => {
                let key = (caller.person.by.person, spot);
                let cell = self.shared.lock().unwrap().entry(key).or_default().clone();
                cell.get_or_init(|| self.session(caller, spot)).await.clone()
            }
            _ => Names { agent: "keyed".to_owned(), ..Names::default() },
        };
        names.heir = place.heir.by.person.to_string();
        if alone {
            self.offer(row, caller, target, &names).await;
        }
        names.fresh = self.fresh();
        names.worktree = "blue".to_owned();
        names.reply = "999999999".to_owned();
        names.number = "1".to_owned();
        let handle = if target == Target::Theirs(false) { "giver" } else { &caller.person.by.handle };
        names.address = format!("web:{handle}/{}", self.fresh());
        names.directory = if target == Target::Theirs(false) { "/elsewhere".into() } else { ROOT.into() };
        match target {
            Target::Nothing | Target::Session(_) | Target::Theirs(_) => {}
            Target::Agent(agent) => names.agent = agent_name(row, agent).to_owned(),
            Target::Person(whom) => names.person = self.person(caller, whom, alone).await.1,
            Target::Token(whom) => names.token = self.token(caller, whom, alone).await,
            Target::Group(which) => names.group = self.group(caller, which, alone).await,
            Target::Membership(which, whom) => {
                names.group = self.group(caller, which, alone).await;
                names.person = self.person(caller, whom, alone).await.1;
            }
            Target::To(which) => names.person = self.to(caller, which),
            Target::Rule(which) => names.rule = self.rule(caller, which).await,
        }
        names
    }

    /// Somebody, and their id.
    async fn person(&self, caller: &Caller, whom: Whom, alone: bool) -> (Option<Somebody>, String) {
        let somebody = match whom {
            Whom::Me => caller.person.clone(),
            Whom::Of(role) if alone => {
                self.town.person(&self.places[caller.place].owner, &self.fresh(), role).await
            }
            Whom::Of(role) => {
                let cell = self.people.lock().unwrap().entry((caller.place, role)).or_default().clone();
                let owner = &self.places[caller.place].owner;
                cell.get_or_init(|| async { self.town.person(owner, &self.fresh(), role).await })
                    .await
                    .clone()
            }
            Whom::OtherOrg => self.places[1 - caller.place].giver.clone(),
            Whom::Unknown => return (None, PersonId::from_bits(self.nobody()).to_string()),
        };
        let id = somebody.by.person.to_string();
        (Some(somebody), id)
    }

    async fn token(&self, caller: &Caller, whom: Whom, alone: bool) -> String {
        let token = match self.person(caller, whom, alone).await.0 {
            // Their own, but not the one they ask with.
            Some(somebody) if alone => self.town.token(&somebody, Rights::ALL).await.by.credential.unwrap(),
            Some(somebody) => somebody.by.credential.unwrap(),
            None => TokenId::from_bits(self.nobody()),
        };
        token.to_string()
    }

    async fn group(&self, caller: &Caller, which: Which, alone: bool) -> String {
        let group = match which {
            Which::Ours if alone => {
                let by = self.town.now(&self.places[caller.place].owner).await;
                self.town.engine.people().make_group(&by, self.fresh(), trace()).await.unwrap().group
            }
            Which::Ours => self.places[caller.place].group,
            Which::OtherOrg => self.places[1 - caller.place].group,
            Which::Unknown => GroupId::from_bits(self.nobody()),
        };
        group.to_string()
    }

    async fn rule(&self, caller: &Caller, which: Which) -> String {
        let place = match which {
            Which::Ours => caller.place,
            Which::OtherOrg => 1 - caller.place,
            Which::Unknown => return RuleId::from_bits(self.nobody()).to_string(),
        };
        let by = self.town.now(&self.places[place].owner).await;
        let wanted = NewRule {
            agent: None,
            tool: Some("none of these".to_owned()),
            directory: None,
            session: None,
            effect: RuleEffect::Deny,
            until: None,
        };
        self.town.engine.people().add_rule(&by, wanted, trace()).await.unwrap().rule.to_string()
    }

    fn to(&self, caller: &Caller, which: Which) -> String {
        let person = match which {
            Which::Ours => self.places[caller.place].giver.by.person,
            Which::OtherOrg => self.places[1 - caller.place].giver.by.person,
            Which::Unknown => PersonId::from_bits(self.nobody()),
        };
        person.to_string()
    }

    /// A session to which the caller stands so, with a turn that asks something and a message that waits.
    async fn session(&self, caller: &Caller, spot: Spot) -> Names {
        if spot.stands == Stands::Unknown {
            return Names {
                session: SessionId::from_bits(self.nobody()).to_string(),
                message: MessageId::from_bits(self.nobody()).to_string(),
                approval: ApprovalId::from_bits(self.nobody()).to_string(),
                ..Names::default()
            };
        }
        let (busy, keeper) = self.stand(caller, spot.stands).await;
        let speaker = if spot.mine { &caller.person } else { &keeper };
        let (session, message) =
            self.town.say_along(speaker, To::Session(busy.session), "later", None, vec![small_image()]).await;
        self.town
            .fact(
                &keeper,
                session,
                |fact| matches!(fact, kernel::Fact::Queued { message: queued, .. } if *queued == message),
            )
            .await;
        if spot.ended {
            self.town.end(&keeper, session).await;
        }
        let (session, message, approval) = (session.to_string(), message.to_string(), busy.asks.to_string());
        let token = self.turn(caller, &busy).await;
        Names { session, message, approval, token, ..Names::default() }
    }

    /// The session, and somebody besides the caller who manages it.
    async fn stand(&self, caller: &Caller, stands: Stands) -> (Busy, Somebody) {
        let (town, place) = (self.town, &self.places[caller.place]);
        let (giver, me) = (&place.giver, &caller.person);
        let makes = caller.is.role > Role::Viewer;
        let manages = (Grantee::Person(giver.by.person), Grant::Manage);
        let busy = match stands {
            Stands::Own if makes => {
                let busy = town.busy(me, None).await;
                town.give(me, busy.session, manages.0, manages.1).await;
                busy
            }
            Stands::WasOwn | Stands::WasOwnViews => {
                let session = self.handed(me, giver).await;
                town.busy_in(giver, To::Session(session), None).await
            }
            Stands::Own | Stands::OwnOfClosedAgent => {
                let session = self.handed(giver, me).await;
                town.give(me, session, manages.0, manages.1).await;
                if stands == Stands::OwnOfClosedAgent {
                    self.let_use(giver, session, "closed").await;
                }
                town.busy_in(giver, To::Session(session), None).await
            }
            Stands::OtherOrg => {
                let other = &self.places[1 - caller.place].giver;
                return (town.busy(other, None).await, other.clone());
            }
            _ => town.busy(giver, None).await,
        };
        let session = busy.session;
        let given = match stands {
            Stands::Person(grant) => Some((Grantee::Person(me.by.person), grant)),
            Stands::Group(grant) => Some((Grantee::Group(place.group), grant)),
            Stands::Org(grant) => Some((Grantee::Org, grant)),
            Stands::WasOwnViews => Some((Grantee::Person(me.by.person), Grant::View)),
            _ => None,
        };
        if let Some((to, grant)) = given {
            town.give(giver, session, to, grant).await;
        }
        (busy, giver.clone())
    }

    /// A session that was one's and is the other's. Nothing goes on in it: what did would have ended.
    async fn handed(&self, from: &Somebody, to: &Somebody) -> SessionId {
        let (town, if_new) = (self.town, IfNew::default());
        let made = town.engine.way_in().make(&town.now(from).await, if_new, None, trace()).await.unwrap();
        town.hand_over(from, made.session, to).await;
        made.session
    }

    /// Nobody accepts a session whose agent is not theirs to use; but whoever manages it may give it another one later.
    async fn let_use(&self, by: &Somebody, session: SessionId, agent: &str) {
        let (model, mode) = (Setting::Keep, Setting::Keep);
        let change = Change::Set { agent: Some(agent.to_owned()), model, mode };
        let request = Request::ChangeScope { session, change, now: false };
        self.town.engine.way_in().ask(&self.town.now(by).await, request, trace()).await.unwrap();
    }

    /// Whatever is asked about an offer that is there needs one.
    async fn offer(&self, row: &Row, caller: &Caller, target: Target, names: &Names) {
        let (Target::Session(Spot { stands, .. }), place) = (target, &self.places[caller.place]) else {
            return;
        };
        let owner = if stands == Stands::Own { &caller.person } else { &place.giver };
        let session = names.session.parse();
        match row.operation {
            "take_offer_back" => {
                self.town.offer(&place.giver, session.unwrap(), place.heir.by.person).await;
            }
            "accept_offer" | "decline_offer" => {
                self.town.offer(owner, session.unwrap(), caller.person.by.person).await;
            }
            _ => {}
        }
    }

    /// The credential of the turn that is under way there, for whoever asks with it.
    async fn turn(&self, caller: &Caller, busy: &Busy) -> String {
        if caller.is.bound != Bound::Here {
            return String::new();
        }
        let made = self.town.credential(&caller.person, Purpose::Turn, |row| {
            row.bound = Some((busy.session, Turn(1)));
            row.rights = Rights::NONE.with(Right::Read).with(Right::Prompt);
        });
        made.await.token
    }
}

fn agent_name(row: &Row, agent: Agent) -> &'static str {
    match agent {
        // Others are not to notice what is given on it.
        Agent::Lent if row.operation.ends_with("_agent") => "spare",
        Agent::Open => "scripted",
        Agent::Closed => "closed",
        Agent::Looked => "looked",
        Agent::Lent => "lent",
        Agent::Unknown => "nobody",
    }
}
