package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// attack runs deploy/attack.sh as a person with a shell does, and returns its exit code and
// what it prints.
func attack(t *testing.T, base, key, member string, more ...string) (int, string) {
	t.Helper()
	script, err := filepath.Abs("../../deploy/attack.sh")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", script, base, key)
	command.Env = append(append(os.Environ(), "MEMBER="+member, "STORED="+providerKey), more...)
	said, err := command.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return exit.ExitCode(), string(said)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(said)
}

// member signs up a member of the workspace that someone owns, and logs them in.
func (w *tenant) member(owner *pgxpool.Pool, of string) *tenant {
	w.t.Helper()
	member := &tenant{instance: w.instance}
	member.signUp("member")
	for _, statement := range []string{"DELETE FROM logins WHERE user_id = (SELECT id FROM users WHERE email = 'member@example.com')",
		`UPDATE members SET role = 'member', workspace_id = (SELECT workspace_id FROM members JOIN users ON users.id = user_id WHERE email = '` + of + `@example.com')
		WHERE user_id = (SELECT id FROM users WHERE email = 'member@example.com')`} {
		if _, err := owner.Exec(w.t.Context(), statement); err != nil {
			w.t.Fatal(err)
		}
	}
	member.cookies = member.call(http.MethodPost, "/api/v1/login", map[string]any{"email": "member@example.com", "password": "correct horse battery"}, http.StatusOK, nil).Cookies()
	return member
}

// The running program, attacked from a shell: a member and keys make no stronger key, no path
// goes around the pipeline, no method or answer gives the stored key away, no end user reads another's words,
// and budgets, sign-ups and workspaces have an end.
// S3, S14, S16, S34, S38, S45, S47, S49
func TestScriptFromOutsideFindsEveryHoleShut(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	// Few sign-ups and workspaces, because each costs a password that is hashed.
	c := &child{
		t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL,
		settings: []string{"PALIMPSEST_SIGNUPS_PER_PLACE=3", "PALIMPSEST_WORKSPACES_PER_PERSON=2"},
	}
	c.start()
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey, Count: counter(t).Count})
	w := &tenant{instance: &instance{t: t, double: double}}
	c.adopt(w)
	w.join("owner")
	member := w.member(database.Owner(t), "owner")
	cookie := member.cookies[0].Name + "=" + member.cookies[0].Value

	dir := filepath.Join(t.TempDir(), "backup")
	settings := []string{"PALIMPSEST_SECRET_KEY=" + dbtest.SecretKey, "DATABASE_URL=" + database.OwnerURL, "PALIMPSEST_DATA_DIR=" + t.TempDir()}
	backup := exec.CommandContext(t.Context(), c.binary, "backup", dir)
	backup.Env = append(os.Environ(), settings...)
	if said, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("backup: %v\n%s", err, said)
	}

	code, said := attack(t, "http://"+c.addr, w.key, cookie, append(settings, "BACKUP="+dir, "PALIMPSEST="+c.binary, "SIGNUPS=1")...)
	if code != 0 || strings.Contains(said, "OPEN") || !strings.HasSuffix(said, "all shut\n") || strings.Count(said, "\nshut ") < 180 || !strings.Contains(said, "a longer dump") || strings.Contains(said, " stays: ") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	for _, tried := range []string{
		"429  /api/v1/signup, number 2 from this place", "422  /api/v1/workspaces, number 3 of one person",
		"200  /mcp as a member's key", "200  /api/v1/search as a member, by cookie", "422  /api/v1/keys as a member with rehydrator: {scope: workspace}",
		"200  /v1/messages as another end user", "200  /v1/chat/completions as another end user", "200  /v1/responses as another end user",
	} {
		if !strings.Contains(said, tried) {
			t.Errorf("the script does not say %q:\n%s", tried, said)
		}
	}
	var left int
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM workspaces WHERE name = 'attack' AND deleted_at IS NULL").Scan(&left); err != nil || left > 0 {
		t.Errorf("the script leaves %d workspaces, %v", left, err)
	}
	var people struct{ Data []struct{ Role string } }
	w.cookies, member.cookies = w.cookies[:1], nil
	w.call(http.MethodGet, "/api/v1/members", nil, http.StatusOK, &people)
	for _, person := range people.Data {
		if person.Role == "admin" {
			t.Errorf("the attack made an admin: %+v", people)
		}
	}
	if code, said := attack(t, "http://"+c.addr, "plm_live_wrong", cookie); code != 2 {
		t.Errorf("with a key that does not work: exit code %d:\n%s", code, said)
	}
	c.stop()
}

// A wrong answer makes the script fail: here a server accepts whatever it is sent.
// S34
func TestScriptFromOutsideTellsAnOpenDoor(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case strings.HasPrefix(request.URL.Path, "/api/v1/keys") && request.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"id":"1","secret":"plm_live_x"}`))
		case request.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write([]byte(request.URL.Path + providerKey))
		}
	}))
	defer open.Close()
	code, said := attack(t, open.URL, "plm_live_x", "palimpsest=x")
	if code != 1 || strings.Contains(said, "\nshut ") || !strings.Contains(said, "OPEN, shows the stored key") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
