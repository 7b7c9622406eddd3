//! The memory store's audit: one entry for each thing that was done or refused, and the chain over each org's entries.

use super::contents::Contents;
use crate::*;
use kernel::{Moment, OrgId, Principal};

impl Contents {
    /// Writes down that somebody did something. Every change by somebody ends here: it is one commit of its own.
    pub(super) fn done(&mut self, by: &Principal, about: AuditSubject, trail: &Trail) {
        self.write_down(AuditRow::done(by.org, by.person, about, trail));
        self.committed();
    }

    pub(super) fn refused(&mut self, entry: &AuditEntry) {
        let hosts = self.people.hosts_org().unwrap_or(OrgId::from_bits(0));
        self.write_down(AuditRow::refused(entry, hosts));
        self.committed();
    }

    pub(super) fn own_acts(&mut self, append: &Append) {
        let Some(org) = self.sessions.get(&append.session).map(|kept| kept.record.org) else { return };
        AuditRow::own_acts(org, append).for_each(|row| self.write_down(row));
    }

    pub(super) fn write_down(&mut self, row: AuditRow) {
        let last = self.entries.entry(row.org).or_default();
        *last += 1;
        self.audit.push(AuditRow { entry: *last, ..row });
    }

    pub(super) fn audit_page(&self, query: &AuditQuery) -> Vec<AuditRow> {
        self.audit.iter().rev().filter(|row| row.fits(query)).take(query.limit).cloned().collect()
    }

    pub(super) fn seal_audit(&mut self, key: &ChainKey, limit: usize) -> usize {
        let mut sealed = 0;
        for row in self.audit.iter_mut().filter(|row| row.sealed.is_none()).take(limit) {
            let head = self.chains.entry(row.org).or_default();
            let number = head.number + 1;
            let seal = chain::seal(key, *head, number, row);
            row.sealed = Some((number, seal));
            *head = ChainHead { number, seal };
            sealed += 1;
        }
        if sealed > 0 {
            self.committed();
        }
        sealed
    }

    pub(super) fn sealed(&self, org: OrgId, after: u64, limit: usize) -> Vec<AuditRow> {
        let later = |row: &&AuditRow| row.org == org && row.sealed.is_some_and(|(number, _)| number > after);
        self.audit.iter().filter(later).take(limit).cloned().collect()
    }

    /// Nothing is kept beside the entries here: each is found by what it says.
    pub(super) fn sealed_keys(&self, org: OrgId, after: u64, limit: usize) -> Vec<AuditKeys> {
        let sealed = self.audit.iter().filter(|row| row.org == org && row.sealed.is_some());
        let mut latest = Moment(0);
        let keys = sealed.map(|row| {
            let keys = AuditKeys::of(row, latest);
            latest = keys.at;
            keys
        });
        keys.skip(after as usize).take(limit).collect()
    }

    pub(super) fn tamper(&mut self, org: OrgId, entry: u64) {
        for row in self.audit.iter_mut().filter(|row| (row.org, row.entry) == (org, entry)) {
            row.verb = "tampered".into();
        }
    }
}
