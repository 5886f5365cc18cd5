-- +goose Up

-- The member whose role bounds what an API key may do, where that is not who created it:
-- who rotated it last, or took it over when its creator left. NULL: the creator.
-- The secret before a rotation stays with who stood behind it.
ALTER TABLE api_keys ADD COLUMN person_id uuid, ADD COLUMN old_person_id uuid;

-- A login that came through a workspace's single sign-on opens that workspace only. NULL:
-- the person proved who they are here, and it opens all of theirs.
ALTER TABLE logins ADD COLUMN sign_on_workspace uuid;

-- As whom a workspace's identity provider knows a member. NULL: it has never been connected
-- with the account.
ALTER TABLE members
  ADD COLUMN sign_on_issuer  text,
  ADD COLUMN sign_on_subject text,
  ADD CHECK ((sign_on_issuer IS NULL) = (sign_on_subject IS NULL));

-- +goose Down
ALTER TABLE members DROP COLUMN sign_on_issuer, DROP COLUMN sign_on_subject;
-- A program from before would let such a login into every workspace.
DELETE FROM logins WHERE sign_on_workspace IS NOT NULL;
ALTER TABLE logins DROP COLUMN sign_on_workspace;
ALTER TABLE api_keys DROP COLUMN person_id, DROP COLUMN old_person_id;
