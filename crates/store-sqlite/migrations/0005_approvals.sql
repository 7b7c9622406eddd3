-- What an approval says is found by its id: the body of the story fact that it was asked with, which stood right before.
ALTER TABLE approvals ADD COLUMN body INTEGER; -- none of what was asked before its words were kept
UPDATE approvals SET body = (
    SELECT f.body FROM facts f
    WHERE f.sid = approvals.sid AND f.number = approvals.number - 1 AND f.rule = 0 AND f.kind = 'question'
);
