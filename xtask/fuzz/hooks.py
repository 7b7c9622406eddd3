"""What schemathesis does around each request of the HTTP fuzz, and what it checks beyond the contract.

Owns three things, in this order: the ground (sessions, messages and an open question that requests can be about), the
aim (a generated id that is well formed is often replaced by one that exists, so that requests get past "not found"),
and the law: a refusal leaves every table but the audit as it was, and so does a read.

One question holds the only place for a running turn, so what the requests add waits and no agent writes in between.
`settle` waits for the keepers after each accepted change; only then is the next request made. Nothing here writes to
the database: it is opened read-only, beside the server.

HOMING_FUZZ_DATA names the data directory, HOMING_FUZZ_REPORT the file that gets the counts.
"""

import atexit
import hashlib
import json
import os
import re
import sqlite3
import time
from collections import Counter
from pathlib import Path

import requests
import schemathesis

DATA = Path(os.environ["HOMING_FUZZ_DATA"])
REPORT = Path(os.environ["HOMING_FUZZ_REPORT"])
# How long the keepers may take to work off what was accepted.
SETTLE_SECONDS_MAX = 20
SETTLE_PAUSE_SECONDS = 0.002
# Longer than words of an agent wait before they are written down (`words_wait` in the server's configuration).
WORDS_SECONDS = 0.1
# How long a turn may take to ask its question, and how often it is tried.
PLACE_SECONDS = 2
PLACE_TRIES_MAX = 10
# How many of the newest rows an aim chooses from; old ones have often ended.
AIM_ROWS = 48


# The ground.


class Server:
    """The server as the ground needs it: a few requests of our own, which nobody counts."""

    def __init__(self):
        self.url = (DATA / "url").read_text().strip()
        self.session = requests.Session()
        self.session.headers["Authorization"] = "Bearer " + (DATA / "token").read_text().strip()

    def ask(self, method, path, body=None):
        answer = self.session.request(method, self.url + "/api/v1" + path, json=body, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def say(self, conversation, text):
        return self.ask("POST", "/messages", {"to": {"conversation": conversation}, "text": text})

    def prepare(self):
        for text in ["hello", "!fail after", "kept back by the failure before it"]:
            self.say("api:ground/1", text)
        ended = self.say("api:ground/2", "hello")["session"]
        TABLES.settle()
        self.ask("POST", f"/sessions/{ended}/end")
        TABLES.settle()

    def widen(self):
        """A request may have told the org to have hardly any sessions; everything after it would hear just that."""
        self.ask("PATCH", "/org", {"open_max": None})

    def forget_rules(self):
        """A request may have made a rule that answers what an agent asks; then no question holds the place."""
        for rule in self.ask("GET", "/approvals/rules")["items"]:
            self.ask("DELETE", f"/approvals/rules/{rule['id']}")

    def take_the_place(self):
        """Lets a turn ask a question, which holds the place until somebody answers or stops it."""
        self.forget_rules()
        session = self.ask("POST", "/sessions", {})["id"]
        for _ in range(PLACE_TRIES_MAX):
            # If the place was not quite free, the next message lets the keeper look again.
            self.ask("POST", "/messages", {"to": {"session": session}, "text": "!ask the-fuzz"})
            if TABLES.has_question_within(PLACE_SECONDS):
                break
        # What the agent said before it asked may be written down a moment later.
        version = None
        while version != TABLES.version():
            version = TABLES.version()
            time.sleep(WORDS_SECONDS)
        assert TABLES.is_quiet() and TABLES.has_question(), "the place cannot be taken"


class Tables:
    """Every table but the audit and what its sealer writes, which follows by itself, seen from outside."""

    SEALERS = {"audit", "audit_about", "audit_chain", "audit_heads", "counters"}

    def __init__(self):
        # Hooks are called by one worker, which is not the thread that loads this file.
        path = f"file:{DATA / 'homing.db'}?mode=ro"
        self.db = sqlite3.connect(path, uri=True, isolation_level=None, check_same_thread=False)
        names = self.column("SELECT name FROM sqlite_schema WHERE type = 'table'")
        # What is searched is written after turns, by nobody's request, and not every SQLite reads its table of keywords.
        by_nobody = ("sqlite_", "keywords", "passages")
        names = [name for name in names if name not in self.SEALERS and not name.startswith(by_nobody)]
        self.whole = {name: self.query_of(name) for name in names}
        self.seen = None
        self.seen_version = None

    def query_of(self, name):
        columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({name})")]
        # Which keeper wrote last, when a credential was used, and how far the index of search is: all written by the way.
        by_the_way = {("sessions", "term"), ("tokens", "last_used"), ("counters", "indexed")}
        columns = [column for column in columns if (name, column) not in by_the_way]
        quoted = "||','||".join(f'quote("{column}")' for column in columns)
        return f"SELECT group_concat({quoted}, ';') FROM {name}"

    def column(self, sql, *values):
        return [row[0] for row in self.db.execute(sql, values)]

    def version(self):
        """Another number whenever somebody else has committed anything."""
        return self.column("PRAGMA data_version")[0]

    def digests(self):
        self.db.execute("BEGIN")
        try:
            every = ((name, self.column(sql)[0] or "") for name, sql in self.whole.items())
            return {name: hashlib.blake2b(text.encode(), digest_size=16).digest() for name, text in every}
        finally:
            self.db.execute("COMMIT")

    def look(self):
        """Which tables are not as they were at the last look."""
        version = self.version()
        if version == self.seen_version:
            return []
        before, self.seen, self.seen_version = self.seen or {}, self.digests(), version
        return [name for name, digest in self.seen.items() if before.get(name) != digest]

    def is_quiet(self):
        """Nothing waits for a keeper, what runs waits for an answer and is not about to be stopped, and no worktree is
        being made."""
        busy = self.column(
            """
            SELECT EXISTS (SELECT 1 FROM inbox) OR EXISTS (
                SELECT 1 FROM messages AS m WHERE state = 'running' AND (
                    NOT EXISTS (SELECT 1 FROM approvals AS a WHERE a.sid = m.sid AND a.state = 'open')
                    OR EXISTS (SELECT 1 FROM facts AS f WHERE f.sid = m.sid AND f.number > m.first AND f.rule = 1
                               AND (f.fact LIKE '{"stop_asked"%' OR f.fact LIKE '{"end_asked"%'))
                )
            ) OR EXISTS (
                SELECT 1 FROM facts AS f WHERE f.rule = 1 AND f.fact LIKE '{"errand_started"%' AND NOT EXISTS (
                    SELECT 1 FROM facts AS g WHERE g.sid = f.sid AND g.number > f.number AND g.rule = 1
                    AND (g.fact LIKE '{"scope_changed"%' OR g.fact LIKE '{"errand_failed"%' OR g.fact LIKE '{"undone"%')
                )
            )
            """
        )
        return busy == [0]

    def settle(self):
        began = time.monotonic()
        while not self.is_quiet():
            assert time.monotonic() - began < SETTLE_SECONDS_MAX, "the keepers do not come to rest"
            time.sleep(SETTLE_PAUSE_SECONDS)

    def was_judged(self):
        """Whether the last wish got as far as a keeper, and was refused there."""
        return self.column("SELECT verdict FROM requests ORDER BY rid DESC LIMIT 1")[0] not in (None, "done")

    def is_narrow(self):
        return bool(self.column("SELECT 1 FROM orgs WHERE open_max IS NOT NULL"))

    def has_question(self):
        return bool(self.column("SELECT 1 FROM approvals WHERE state = 'open'"))

    def has_question_within(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.has_question():
            time.sleep(SETTLE_PAUSE_SECONDS)
        return self.has_question()


TABLES = Tables()
SERVER = Server()


# The aim.

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
ID = re.compile(r"(ses|msg|apr|rul|usr|grp|tok)_[0-7][0-9a-hjkmnp-tv-z]{25}")
# The machine's person and credential are not aimed at: it is with these that we ask.
ROWS_OF = {
    "ses": "SELECT id FROM sessions ORDER BY sid DESC LIMIT ?",
    "msg": "SELECT id FROM messages ORDER BY mid DESC LIMIT ?",
    "apr": "SELECT id FROM approvals ORDER BY aid DESC LIMIT ?",
    "rul": "SELECT id FROM rules ORDER BY rid DESC LIMIT ?",
    "usr": "SELECT person FROM persons WHERE handle IS NOT NULL AND host = 0 ORDER BY pid DESC LIMIT ?",
    "grp": "SELECT id FROM groups ORDER BY gid DESC LIMIT ?",
    "tok": "SELECT token FROM tokens WHERE purpose NOT IN ('machine', 'turn') ORDER BY made_at DESC LIMIT ?",
}


def spell(kind, bits):
    number = int.from_bytes(bits, "big")
    return f"{kind}_" + "".join(LETTERS[number >> (5 * place) & 31] for place in range(25, -1, -1))


class Aim:
    """Chooses by a hash of what was generated, so that the same request is aimed the same way at the same ground."""

    def __init__(self, case):
        generated = json.dumps([case.path_parameters, case.query, case.body], default=repr, sort_keys=True)
        self.dice = hashlib.blake2b(f"{case.method} {case.path} {generated}".encode(errors="replace")).digest()
        self.at = 0

    def roll(self, sides):
        self.at += 1
        return self.dice[self.at % len(self.dice)] % sides

    def pick(self, choices):
        return choices[self.roll(len(choices))]

    def id(self, text):
        """An id that exists, three times out of four."""
        if not isinstance(text, str) or not ID.fullmatch(text) or self.roll(4) == 0:
            return text
        kind = text[:3]
        known = TABLES.column(ROWS_OF[kind], AIM_ROWS)
        return spell(kind, self.pick(known)) if known else text

    def conversation(self, text):
        known = TABLES.column("SELECT address FROM bindings ORDER BY bid DESC LIMIT ?", AIM_ROWS)
        return self.pick(known) if known and self.roll(2) else text

    def body(self, body, path):
        if not isinstance(body, dict):
            return
        for name in ("session", "user", "group", "to", "conversation", "address"):
            if name in ("session", "user", "group", "to"):
                body.update({name: self.id(body[name])} if name in body else {})
            elif isinstance(body.get(name), str) and re.match(r"(api|slack|schedule|acp|mcp):[^/]+", body[name]):
                body[name] = self.conversation(body[name])
        # Names that the schema allows and this server does not have.
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", str(body.get("agent", ""))) and self.roll(4):
            body["agent"] = "scripted"
        if str(body.get("directory", "")).startswith("/") and self.roll(4):
            body["directory"] = str(DATA.parent)
        if isinstance(body.get("revision"), int) and body["revision"] >= 0 and self.roll(2):
            body["revision"] = 0
        if str(body.get("relink", "")).startswith("/") and self.roll(4):
            body["relink"] = str(DATA.parent)
        # The turns and epochs that the ground has; most sessions have no more.
        for name, first in (("turn", 1), ("at", 1), ("under", 0)):
            if isinstance(body.get(name), int) and body[name] >= first and self.roll(2):
                body[name] = first + self.roll(2)
        if isinstance(body.get("order"), list) and all(ID.fullmatch(str(one)) for one in body["order"]):
            body["order"] = self.order(path) if self.roll(2) else body["order"]
        for name in ("to", "new", "if_new", "set"):
            self.body(body.get(name), path)

    def order(self, path):
        """What waits in the session that the path names, the other way round."""
        waiting = TABLES.db.execute(
            "SELECT s.id, m.id FROM messages m JOIN sessions s USING (sid)"
            " WHERE m.state IN ('waiting', 'held') ORDER BY m.seat DESC"
        )
        return [spell("msg", message) for session, message in waiting if spell("ses", session) in path][:1_000]


@schemathesis.hook
def before_call(context, case, **kwargs):
    aim = Aim(case)
    # In the same order each time: the dice are the same, too.
    for name in sorted({"id", "person"} & set(case.path_parameters or {})):
        case.path_parameters[name] = aim.id(case.path_parameters[name])
    for query in [case.query or {}]:
        for name in sorted({"session", "user", "group", "who"} & set(query)):
            query[name] = aim.id(query[name])
        if str(query.get("turn")).isdecimal() and aim.roll(2):
            query["turn"] = 1 + aim.roll(2)
        # A receipt that never becomes final would be waited for to the end.
        if str(query.get("wait")).isdecimal() and int(query["wait"]) <= 60:
            query["wait"] = 0 if aim.roll(32) else 1
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(r"[!-~]{1,255}", key) and aim.roll(4) == 0:
        case.headers["Idempotency-Key"] = f"again-{aim.roll(8)}"
    aim.body(case.body, str((case.path_parameters or {}).get("id")))
    LAW.before(case)


# A file of one turn: the line that was generated takes its place in it, so that requests get past "not a header".
FIRST = {
    "type": "header", "format": "homing-session", "version": 1, "session": "ses_00000000000000000000000000", "org": "fuzz",
    "agent": "scripted", "by": "fuzz", "at": "2026-01-01T00:00:00Z",
    "left_out": {"turns": 0, "messages": 0, "questions": 0, "changes": 0},
}  # fmt: skip


@schemathesis.serializer("application/jsonl")
def lines_of_an_export(context, value):
    if isinstance(value, (str, bytes)):
        return value.encode(errors="replace") if isinstance(value, str) else value
    kind = value.get("type") if isinstance(value, dict) else None
    dice = hashlib.blake2b(json.dumps(value, default=repr).encode()).digest()
    if kind == "header" and dice[0] % 2 and LAW.is_good:
        value = {**value, "format": FIRST["format"], "version": FIRST["version"]}
    # Another conversation each time: the same one is imported once.
    first = {**FIRST, "session": spell("ses", dice[:16])}
    lines = [value] if kind == "header" else [first, value]
    if dice[16] % 4 == 0 and LAW.is_good:
        lines = [first]
    lines += [] if lines[-1] is value and kind == "end" else [{"type": "end", "turns": len(lines) - 1}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


# The law.

# A keeper's "no" to a wish that was safe already: its record stays, so that whoever asks again hears the same.
JUDGED = {"requests", "keys", "counters"}
# Statuses of the HTTP layer itself, which speaks before we do and has no words of ours: a head that is too long.
NOT_OURS = {414, 431}
# What is refused although the schema allows it, because a schema cannot say it: a cursor is whatever we gave, a query
# cannot say "one of these", each agent takes variables of its own, what ends must end later than now, only what is
# released goes anywhere, who may answer is said only where somebody is asked, nobody allows everything, each question
# takes answers of its own form, and a file is more than its lines.
BEYOND_SCHEMA = {
    ("bad_cursor", "cursor"),
    ("invalid", "route"),
    ("invalid", "secrets"),
    ("invalid", "expires"),
    ("invalid", "there"),
    ("invalid", "who"),
    ("invalid", "effect"),
    ("invalid", "until"),
    ("unfit_answer", "answer"),
    ("bad_export", "import"),
    # How the bytes of an image begin, and which characters nobody sees in the name of a file.
    ("invalid", "parts"),
    # Marks of which each is named, and is null.
    ("invalid", "seen"),
    # Where a push service may be, and what is a point of a curve.
    ("invalid", "endpoint"),
    ("invalid", "keys.p256dh"),
    ("invalid", "keys.auth"),
}
# The same: a query that has to name one of these.
GRANTEES = {"user", "group", "org"}


class Law:
    """What one request may change."""

    def __init__(self):
        self.counts = Counter()
        self.broken = None
        # Whether the request that is being made is a good one. What is wrong with a bad one must stay so.
        self.is_good = False

    def before(self, case):
        self.is_good = is_allowed_by_schema(case)
        TABLES.look()

    def after(self, case, response):
        status = response.status_code
        self.counts["requests"] += 1
        self.counts[f"status {status}"] += 1
        self.counts[f"operation {case.operation.label}"] += 1
        self.broken = None
        if 400 <= status < 500 or case.method.upper() in ("GET", "HEAD"):
            self.broken = self.changed_by(case, response)
        TABLES.settle()
        if TABLES.is_narrow():
            SERVER.widen()
        if not TABLES.has_question():
            SERVER.take_the_place()

    def changed_by(self, case, response):
        self.counts["requests that may change nothing"] += 1
        changed = set(TABLES.look())
        if response.status_code == 409 and "requests" in changed and changed <= JUDGED and TABLES.was_judged():
            self.counts["verdicts of keepers"] += 1
            return None
        return f"{case.method} answered with {response.status_code} has changed {sorted(changed)}" if changed else None

    def report(self):
        REPORT.write_text(json.dumps(self.counts, indent=2, sort_keys=True) + "\n")


LAW = Law()
atexit.register(LAW.report)


@schemathesis.hook
def after_load_schema(context, schema):
    TABLES.settle()
    SERVER.prepare()
    SERVER.take_the_place()


@schemathesis.hook
def after_call(context, case, response):
    LAW.after(case, response)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    return response.status_code not in NOT_OURS


@schemathesis.check
def refusals_and_reads_change_nothing(ctx, response, case):
    assert LAW.broken is None, LAW.broken


@schemathesis.check
def problems_are_told_in_full(ctx, response, case):
    """Every refusal is a problem with its own status, a code and a hint."""
    if response.status_code < 400 or response.status_code in NOT_OURS:
        return
    problem = response.json()
    assert problem["status"] == response.status_code, problem
    assert problem["code"] and problem["hint"] and problem["type"].endswith(problem["code"]), problem


@schemathesis.check
def only_a_documented_503(ctx, response, case):
    assert response.status_code < 500 or response.status_code == 503, response.status_code


@schemathesis.check
def what_the_schema_allows_is_not_called_invalid(ctx, response, case):
    """Like positive_data_acceptance, but knows our codes: a good request may name what is not there."""
    if response.status_code not in (400, 413, 415, 422) or not is_allowed_by_schema(case):
        return
    problem = response.json()
    field = problem.get("field", case.operation.path.rsplit("/", 1)[-1])
    is_known = names_no_grantee(case, field) or names_more(case, field) or goes_both_ways(case, field)
    is_known = is_known or is_no_span_of_days(case, field)
    assert (problem["code"], field) in BEYOND_SCHEMA or is_known, problem


def names_no_grantee(case, field):
    takes = {parameter.name for parameter in case.operation.query}
    return field == "user" and GRANTEES <= takes and len(GRANTEES & set(case.query or {})) != 1


def names_more(case, field):
    """A list that is narrowed to a name can be narrowed to nothing else, which no schema of parameters can say."""
    takes = {parameter.name for parameter in case.operation.query}
    return field == "name" and {"name", "doing"} <= takes and len(set(case.query or {}) - {"limit"}) > 1


def goes_both_ways(case, field):
    """A page of facts is before a number or after one, which no schema of parameters can say, either."""
    return field == "before" and {"before", "after"} <= set(case.query or {})


def is_no_span_of_days(case, field):
    """A pattern knows no calendar, nor which of two days comes first."""
    return field in {"from", "to"} and case.operation.path.endswith("/usage")


def is_allowed_by_schema(case):
    """A case that is called positive may still have another part that is not: it may be about one parameter."""
    meta = case.meta
    parts = list(meta.components.values()) if meta else []
    return bool(parts) and meta.generation.mode.is_positive and all(part.mode.is_positive for part in parts)
