package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
)

// notOfThis is what a start with the wrong master key says.
const notOfThis = "PALIMPSEST_SECRET_KEY (or secret.key in the data directory) is not that of this database"

// masterKey returns the setting of a master key made of one letter.
func masterKey(letter string) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(letter), 32))
}

// S15: a master key is known from the first start on, and changed as later, while
// nothing else is sealed with it.
func TestMasterKeyIsKnownAndChangedBeforeThereIsADataKey(t *testing.T) {
	t.Parallel()
	config := settings.DefaultConfig()
	database := dbtest.Empty(t)
	config.Storage.DatabaseURL, config.Storage.DataDir = database.OwnerURL, t.TempDir()
	for _, step := range []struct{ keys, want string }{
		{masterKey("a"), "need the first master key only"},
		{masterKey("b"), notOfThis},
		{masterKey("a"), "need the first master key only"},
		{masterKey("b") + "," + masterKey("c"), notOfThis},
		{masterKey("b") + "," + masterKey("a"), "need the first master key only"},
		{masterKey("a"), notOfThis},
		{masterKey("b"), "need the first master key only"},
	} {
		command := vaultCommand(func() (settings.Config, error) {
			config.Storage.SecretKey = step.keys
			return config, nil
		})
		var out bytes.Buffer
		command.SetArgs([]string{"reseal"})
		command.SetOut(&out)
		command.SilenceErrors, command.SilenceUsage = true, true
		if err := command.ExecuteContext(t.Context()); err != nil {
			fmt.Fprint(&out, err)
		}
		if !strings.Contains(out.String(), step.want) {
			t.Errorf("with %s: %s, want %q", step.keys, &out, step.want)
		}
	}
	var sealed int
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT (SELECT count(*) FROM data_keys) + 10 * (SELECT count(*) FROM master_proof)").Scan(&sealed); err != nil || sealed != 10 {
		t.Errorf("%d data keys and ten times the proofs (%v): the test proves nothing", sealed, err)
	}
}

// S15: a process that is started beside others with the master key of another
// installation is refused before it has touched the login that they work with, from the
// first start on.
func TestWrongMasterKeyTakesNobodysLogin(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	right := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	right.start()
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey})
	w := &tenant{instance: &instance{t: t, double: double}}
	right.adopt(w)
	refused := func() {
		t.Helper()
		wrong := exec.Command(right.binary, "serve")
		wrong.Env = append(os.Environ(), "PALIMPSEST_ADDR=127.0.0.1:0", "PALIMPSEST_ADMIN_ADDR=", "PALIMPSEST_DATA_DIR="+t.TempDir(), "DATABASE_URL="+database.OwnerURL,
			"PALIMPSEST_SECRET_KEY="+masterKey("w"))
		said, err := wrong.CombinedOutput()
		if err == nil || !strings.Contains(string(said), notOfThis) {
			t.Errorf("with the wrong key: %v, %s", err, said)
		}
	}
	refused()
	w.join("right")
	exchange := func() {
		t.Helper()
		if status, answer := ask(right.addr, w.key); status != http.StatusOK {
			t.Fatalf("status %d: %s", status, answer)
		}
	}
	count := func(of string) int {
		t.Helper()
		var found int
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM "+of).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	exchange()
	w.until(func() bool { return count("data_keys") == 1 })

	refused()

	// The one that runs loses its connections, and makes new ones.
	if lost := count("pg_stat_activity a, pg_terminate_backend(a.pid) WHERE a.datname = current_database() AND a.usename LIKE 'palimpsest\\_app\\_%'"); lost == 0 {
		t.Fatal("the program had no connection of its login")
	}
	recorded := count("exchanges")
	exchange()
	w.until(func() bool { return count("exchanges") > recorded })
	right.stop()
}
