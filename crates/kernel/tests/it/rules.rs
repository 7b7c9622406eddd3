//! Rules about agents' questions: a table, then every small set of rules.

use homing_kernel::*;
use std::sync::LazyLock;

static HERE: LazyLock<GroundPath> = LazyLock::new(|| GroundPath::from("/srv/shop/api"));

fn session(bits: u128) -> SessionId {
    SessionId::from_bits(bits)
}

fn person(bits: u128) -> PersonId {
    PersonId::from_bits(bits)
}

/// A rule in words: `3 allow agent a tool b* in /srv session 7`, each part but the number and the effect optional.
fn rule(text: &str) -> Rule {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name);
        at.map(|at| words[at + 1].to_string())
    };
    let effect = match words[1] {
        "allow" => Effect::Allow,
        "deny" => Effect::Deny,
        "ask" => Effect::Ask { who: Grantee::Org },
        other => panic!("{other} is no effect"),
    };
    Rule {
        rule: RuleId::from_bits(words[0].parse().expect("a rule begins with its number")),
        agent: after("agent"),
        tool: after("tool"),
        directory: after("in"),
        session: after("session").map(|number| session(number.parse().expect("a session is a number"))),
        effect,
    }
}

fn permission(tool: &str) -> ApprovalSubject<'_> {
    ApprovalSubject {
        form: ApprovalForm::Permission,
        agent: "claude",
        tool,
        kind: "execute",
        directory: &HERE,
        home: None,
        session: session(7),
    }
}

/// The word of the rules on the permission for the tool `Bash`, asked by `claude` in `/srv/shop/api` of session 7.
fn check(rules: &[&str], expected: &str) {
    let rules: Vec<Rule> = rules.iter().map(|text| rule(text)).collect();
    assert_eq!(in_words(judge(&rules, &permission("Bash"))), expected, "{rules:?}");
}

fn in_words(judgement: Judgement) -> String {
    match judgement {
        Judgement::Allow(rule) => format!("allow {}", rule.bits()),
        Judgement::Deny(rule) => format!("deny {}", rule.bits()),
        Judgement::Ask { who: Some((rule, _)) } => format!("ask {}", rule.bits()),
        Judgement::Ask { who: None } => "ask".into(),
    }
}

#[test]
fn without_a_rule_a_person_is_asked() {
    check(&[], "ask");
    check(&["1 allow agent codex", "2 allow tool Read", "3 allow in /srv/other", "4 deny session 8"], "ask");
}

#[test]
fn a_rule_is_about_what_it_names_and_all_of_it() {
    check(&["1 allow"], "allow 1");
    check(&["1 allow agent claude tool Bash in /srv/shop session 7"], "allow 1");
    check(&["1 allow agent claude tool Bash in /srv/shop session 8"], "ask");
    check(&["1 allow agent claude tool Bash in /srv/shops"], "ask");
    check(&["1 allow agent claude tool Bas in /srv/shop"], "ask");
    check(&["1 allow agent Claude"], "ask");
}

#[test]
fn a_directory_is_itself_and_everything_below_it_and_nothing_that_only_begins_so() {
    for (directory, told) in
        [("/", "allow 1"), ("/srv/shop/api", "allow 1"), ("/srv/shop/", "allow 1"), ("/srv/sho", "ask")]
    {
        check(&[&format!("1 allow in {directory}")], told);
    }
    check(&["1 allow in /srv/shop/api/v2"], "ask");
    check(&["1 allow in /srv/../srv/shop"], "ask");
    check(&["1 allow in srv/shop"], "ask");
}

#[test]
fn a_star_at_the_end_is_any_end_and_anywhere_else_a_star() {
    for (tool, told) in
        [("*", "allow 1"), ("Ba*", "allow 1"), ("Bash*", "allow 1"), ("B*sh", "ask"), ("*sh", "ask")]
    {
        check(&[&format!("1 allow tool {tool}")], told);
    }
    let push = permission("Bash(git push)");
    let about = |tool: &str| Rule { tool: Some(tool.into()), ..rule("1 allow") };
    assert_eq!(in_words(judge(&[about("Bash(git *")], &push)), "allow 1");
    assert_eq!(in_words(judge(&[about("Bash(")], &push)), "ask");
}

#[test]
fn a_no_beats_people_and_people_beat_a_yes_however_particular_it_is() {
    check(&["1 allow session 7 tool Bash", "2 ask", "3 deny"], "deny 3");
    check(&["1 allow session 7 tool Bash", "2 ask"], "ask 2");
    check(&["1 ask session 7 tool Bash", "2 deny"], "deny 2");
}

#[test]
fn of_equals_the_more_particular_is_named_and_then_the_older() {
    check(&["1 allow", "2 allow agent claude"], "allow 2");
    check(&["1 allow agent claude", "2 allow tool *"], "allow 1");
    check(&["1 allow agent claude", "2 allow tool B*"], "allow 2");
    check(&["1 allow tool B*", "2 allow tool Ba*"], "allow 2");
    check(&["1 allow tool Bash*", "2 allow tool Bash"], "allow 2");
    check(&["1 allow tool Bash agent claude", "2 allow in /"], "allow 2");
    check(&["1 allow in /srv", "2 allow in /srv/shop"], "allow 2");
    check(&["1 allow in /srv/shop/api", "2 allow session 7"], "allow 2");
    check(&["4 deny tool Bash", "3 deny tool Bash"], "deny 3");
    check(&["3 deny in /srv/", "4 deny in /srv"], "deny 3");
}

#[test]
fn a_yes_is_an_answer_to_a_permission_and_to_nothing_else() {
    for form in [ApprovalForm::Choice { options: 2 }, ApprovalForm::Words] {
        let question = ApprovalSubject { form, ..permission("Bash") };
        assert_eq!(judge(&[rule("1 allow")], &question), Judgement::Ask { who: None });
        assert_eq!(in_words(judge(&[rule("1 allow"), rule("2 ask")], &question)), "ask 2");
        assert_eq!(in_words(judge(&[rule("1 allow"), rule("2 deny")], &question)), "deny 2");
    }
}

#[test]
fn in_a_worktree_the_rules_of_the_directory_it_came_from_count_as_well() {
    let worktree = GroundPath::from("/worktrees/fix");
    let question = ApprovalSubject { directory: &worktree, home: Some(&HERE), ..permission("Bash") };
    for (about, counts) in [("in /srv/shop", true), ("in /worktrees", true), ("in /srv/other", false)] {
        let judged = judge(&[rule(&format!("1 deny {about}"))], &question);
        assert_eq!(judged == Judgement::Deny(RuleId::from_bits(1)), counts, "{about}");
    }
}

#[test]
fn an_answer_fits_what_was_asked_or_is_none() {
    let said = || Answer::Said("blue".into());
    let answers = [Answer::Yes, Answer::No, Answer::Chose(1), Answer::Chose(2), said()];
    for (form, fits) in [
        (ApprovalForm::Permission, [true, true, false, false, false]),
        (ApprovalForm::Choice { options: 2 }, [false, true, true, false, true]),
        (ApprovalForm::Words, [false, true, false, false, true]),
    ] {
        assert_eq!(answers.each_ref().map(|answer| form.takes(answer)), fits, "{form:?}");
    }
}

/// Every set of up to three of these rules, in every order: the judgement depends on the set alone, adding a careful rule
/// never makes it less careful, and the rule it names speaks of the question.
#[test]
fn in_every_small_set_of_rules_the_judgement_is_the_most_careful_one_and_knows_no_order() {
    let matching = ["", "agent claude", "tool Bash", "tool B*", "in /srv", "session 7"];
    let others = ["agent codex", "tool Read", "in /var", "session 8"];
    let mut rules = vec![];
    for about in matching.iter().chain(&others) {
        for effect in ["allow", "ask", "deny"] {
            rules.push(rule(&format!("{} {effect} {about}", rules.len() + 1)));
        }
    }
    let speaks = |rule: &Rule| rule.rule.bits() <= matching.len() as u128 * 3;
    let careful = |judgement: Judgement| match judgement {
        Judgement::Allow(_) => 0,
        Judgement::Ask { .. } => 1,
        Judgement::Deny(_) => 2,
    };
    let question = permission("Bash");
    let mut sets = 0;
    for first in &rules {
        for second in &rules {
            for third in &rules {
                let set = [first.clone(), second.clone(), third.clone()];
                let told = judge(&set, &question);
                let turned = [third.clone(), first.clone(), second.clone()];
                assert_eq!(told, judge(&turned, &question), "{set:?}");
                let strongest = set.iter().filter(|rule| speaks(rule)).map(|rule| match rule.effect {
                    Effect::Allow => 0,
                    Effect::Ask { .. } => 1,
                    Effect::Deny => 2,
                });
                assert_eq!(careful(told), strongest.max().unwrap_or(1), "{set:?}");
                let named = match told {
                    Judgement::Allow(rule) | Judgement::Deny(rule) => Some(rule),
                    Judgement::Ask { who } => who.map(|(rule, _)| rule),
                };
                let known =
                    named.is_none_or(|named| set.iter().any(|rule| rule.rule == named && speaks(rule)));
                assert!(known, "{set:?} gave {told:?}");
                sets += 1;
            }
        }
    }
    assert_eq!(sets, 27_000);
}

#[test]
fn whom_a_rule_names_may_answer_and_whoever_manages_may_say_no() {
    let org = OrgId::from_bits(1);
    let ada = Principal::member(org, person(1), "ada");
    let bob = Principal { groups: vec![GroupId::from_bits(5)], ..Principal::member(org, person(2), "bob") };
    let only_ada = Some(Grantee::Person(person(1)));
    let ops = Some(Grantee::Group(GroupId::from_bits(5)));
    for (by, grant, who, yes, no) in [
        (&ada, Grant::Prompt, None, true, true),
        (&ada, Grant::View, None, false, false),
        (&ada, Grant::Prompt, only_ada, true, true),
        (&ada, Grant::View, only_ada, false, false),
        (&bob, Grant::Prompt, only_ada, false, false),
        (&bob, Grant::Manage, only_ada, false, true),
        (&bob, Grant::Prompt, ops, true, true),
        (&ada, Grant::Manage, ops, false, true),
        (&bob, Grant::Prompt, Some(Grantee::Org), true, true),
    ] {
        let may = |answer: Answer| may_answer(by, grant, who, &answer);
        assert_eq!((may(Answer::Yes), may(Answer::No)), (yes, no), "{} {grant:?} {who:?}", by.handle);
        assert_eq!((may(Answer::Chose(0)), may(Answer::Said("go".into()))), (yes, yes));
    }
}

#[test]
fn a_rule_names_a_tool_or_the_kind_of_thing_that_it_does() {
    check(&["1 allow tool execute"], "allow 1");
    check(&["1 allow tool execute", "2 deny tool Bash"], "deny 2");
    check(&["1 allow tool exec*"], "ask");
    let silent = ApprovalSubject { kind: "", ..permission("execute-order") };
    assert_eq!(in_words(judge(&[rule("1 allow tool execute")], &silent)), "ask");
}
