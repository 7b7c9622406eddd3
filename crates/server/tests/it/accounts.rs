//! People's own sign-ins over HTTP: given, shown by name only, taken away.

use crate::world::World;
use agent::{
    Abilities, Agent, EndedLeftovers, House, HouseConfig, InProcess, Launch, Presence, Reply, Running, Setup,
    TreeName, Trouble,
};
use api::Code;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The scripted agent, and it takes a key, and no words while it works.
pub(crate) struct Keyed(InProcess);

impl Keyed {
    pub(crate) fn new() -> Self {
        Self(InProcess::new(House::new(HouseConfig { seed: 8, linger_ms: 50, ..HouseConfig::default() })))
    }
}

impl Agent for Keyed {
    fn name(&self) -> &str {
        "keyed"
    }
    fn abilities(&self) -> Abilities {
        Abilities { steer: false, ..self.0.abilities() }
    }
    fn look(&self) -> Reply<'_, Presence> {
        self.0.look()
    }
    fn setup(&self) -> Setup {
        Setup { kind: "acp", secrets: vec!["KEYED_TOKEN".to_owned()], ..self.0.setup() }
    }
    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        self.0.start(launch)
    }
    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        self.0.end_leftovers(tree)
    }
}

fn given(value: &str) -> api::NewAccount {
    api::NewAccount { secrets: BTreeMap::from([("KEYED_TOKEN".to_owned(), value.to_owned())]) }
}

#[tokio::test]
async fn a_sign_in_is_given_shown_by_its_names_and_taken_away_and_each_of_it_twice_is_fine() {
    let world = World::new().await;
    let client = world.client();
    let agent = client.agents().await.unwrap().items.into_iter().find(|agent| agent.name == "keyed").unwrap();
    assert_eq!((agent.kind.as_str(), agent.secrets), ("acp", vec!["KEYED_TOKEN".to_owned()]));
    let none = client.account("keyed").await.unwrap();
    assert_eq!((none.account.as_str(), none.secrets.len(), none.since), ("house", 0, None));
    for _ in 0..2 {
        let account = client.set_account("keyed", &given("hush")).await.unwrap();
        assert_eq!(account.secrets, ["KEYED_TOKEN"]);
        assert_eq!(account.account, client.me().await.unwrap().person);
    }
    let shown = world.ask("GET", "/api/v1/agents/keyed/account").send().await.unwrap().text().await.unwrap();
    assert!(shown.contains("KEYED_TOKEN") && !shown.contains("hush"), "{shown}");
    assert!(!format!("{:?}", given("hush")).contains("hush"), "nor does a log line show it");

    let new = api::IfNew { agent: Some("keyed".to_owned()), ..api::IfNew::default() };
    let said = json!({"to": {"new": new}, "text": "hello"});
    let receipt = world.ask("POST", "/api/v1/messages").json(&said).send().await.unwrap();
    let receipt: api::Receipt = receipt.json().await.unwrap();
    let query = api::MessageQuery { wait: Some(20), words: None };
    let receipt = client.receipt(&receipt.id, &query).await.unwrap();
    assert_eq!(receipt.state, api::ReceiptState::Answered);
    let facts = client.facts(&receipt.session, &api::FactsQuery::default()).await.unwrap();
    let launch = facts.items.iter().find_map(|fact| match &fact.what {
        api::What::Story(told) => match &told.story {
            api::Story::Launch(launch) => Some(launch),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(launch.unwrap().account, client.me().await.unwrap().person, "the fact says whose");
    assert!(!serde_json::to_string(&facts).unwrap().contains("hush"));

    for _ in 0..2 {
        assert_eq!(client.remove_account("keyed").await.unwrap().account, "house");
    }
}

#[tokio::test]
async fn what_an_agent_does_not_take_is_refused_and_not_repeated_in_the_answer() {
    let world = World::new().await;
    let client = world.client();
    let put = async |path: &str, body: Value| {
        let path = format!("/api/v1/agents/{path}/account");
        let answer = world.ask("PUT", &path).json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap())
    };
    let bad = [
        ("keyed", json!({"secrets": {"PATH": "hush"}}), 422),
        ("keyed", json!({"secrets": {}}), 422),
        ("keyed", json!({"secrets": {"KEYED_TOKEN": 1}}), 422),
        ("keyed", json!({"secrets": {"KEYED_TOKEN": "hush".repeat(5_000)}}), 422),
        ("keyed", json!({"secrets": {"KEYED_TOKEN": "hush"}, "person": "usr_1"}), 422),
        ("scripted", json!({"secrets": {"KEYED_TOKEN": "hush"}}), 422),
        ("nobody", json!({"secrets": {"KEYED_TOKEN": "hush"}}), 404),
        ("no%2Fbody", json!({"secrets": {"KEYED_TOKEN": "hush"}}), 404),
    ];
    for (agent, body, expected) in bad {
        let (status, text) = put(agent, body).await;
        assert_eq!(status, expected, "{text}");
        assert!(!text.contains("hush"), "{text}");
    }
    let unknown = client.account("nobody").await.unwrap_err();
    assert_eq!(unknown.problem().unwrap().code, Code::NotFound);
}
