package main

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
)

// S15: a process that is started beside others with the master key of another
// installation is refused before it has touched the login that they work with.
func TestWrongMasterKeyTakesNobodysLogin(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	right := &child{t: t, binary: build(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	right.start()
	double := providertest.NewServer(t, providertest.Config{Key: providerKey})
	w := &tenant{instance: &instance{t: t, double: double}}
	right.adopt(w)
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

	wrong := exec.Command(right.binary, "serve")
	wrong.Env = append(os.Environ(), "PALIMPSEST_ADDR=127.0.0.1:0", "PALIMPSEST_ADMIN_ADDR=", "PALIMPSEST_DATA_DIR="+t.TempDir(), "DATABASE_URL="+database.OwnerURL,
		"PALIMPSEST_SECRET_KEY="+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("w"), 32)))
	said, err := wrong.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "PALIMPSEST_SECRET_KEY (or secret.key in the data directory) is not that of this database") {
		t.Errorf("with the wrong key: %v, %s", err, said)
	}

	// The one that runs loses its connections, and makes new ones.
	if lost := count("pg_stat_activity a, pg_terminate_backend(a.pid) WHERE a.datname = current_database() AND a.usename LIKE 'palimpsest\\_app\\_%'"); lost == 0 {
		t.Fatal("the program had no connection of its login")
	}
	recorded := count("exchanges")
	exchange()
	w.until(func() bool { return count("exchanges") > recorded })
	right.stop()
}
