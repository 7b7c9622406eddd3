-- By which door a message came in. Of those before, the audit knows: the code beside this step reads it from there.
ALTER TABLE messages ADD COLUMN door TEXT;
