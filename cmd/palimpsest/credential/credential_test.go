package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// memory is a key store with functions to stand in for it where they are set.
type memory struct {
	keys map[string]string
	fail error
	hang chan struct{}
}

func (m *memory) store() Keys { return Keys{Get: m.get, Set: m.set, Delete: m.remove} }

func (m *memory) get(server string) (string, error) {
	if m.hang != nil {
		<-m.hang
	}
	if m.fail != nil {
		return "", m.fail
	}
	key, found := m.keys[server]
	if !found {
		return "", errors.New("not found")
	}
	return key, nil
}

func (m *memory) set(server, key string) error {
	if m.hang != nil {
		<-m.hang
	}
	if m.fail == nil {
		m.keys[server] = key
	}
	return m.fail
}

func (m *memory) remove(server string) error {
	delete(m.keys, server)
	return m.fail
}

var work = Login{Server: "https://work.example", Workspace: "Work", Key: "pk_work_secret", KeyID: "1"}

func TestKeyLiesInTheSystemsKeyStore(t *testing.T) {
	t.Parallel()
	keys := &memory{keys: map[string]string{}}
	store := Store{Dir: filepath.Join(t.TempDir(), "new"), Keys: keys.store()}

	saved(t, store, work)
	if keys.keys[work.Server] != work.Key || strings.Contains(content(t, store), work.Key) {
		t.Fatalf("key store %v, file %s", keys.keys, content(t, store))
	}

	other := Login{Server: "https://other.example", Key: "pk_other"}
	saved(t, store, other)
	if len(keys.keys) != 1 {
		t.Fatalf("the key of the login before stays: %v", keys.keys)
	}
	if err := store.Delete(); err != nil || len(keys.keys) != 0 {
		t.Fatalf("after delete: %v, %v", keys.keys, err)
	}
	if _, err := store.Load(); !errors.Is(err, ErrNone) {
		t.Fatalf("after delete: %v", err)
	}
	if err := store.Delete(); err != nil {
		t.Fatalf("second delete: %v", err)
	}
}

func TestKeyLiesInAPrivateFileWhereThereIsNoKeyStore(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, keys := range map[string]Keys{
		"absent":  {},
		"failing": (&memory{fail: errors.New("locked")}).store(),
		"hanging": (&memory{keys: map[string]string{}, hang: hang}).store().within(time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := Store{Dir: t.TempDir(), Keys: keys}
			saved(t, store, work)
			if about, err := os.Stat(store.path()); err != nil || about.Mode().Perm() != 0o600 {
				t.Fatalf("mode %v, %v", about.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(store.Dir, "*")); len(left) != 1 {
				t.Fatalf("left in the folder: %v", left)
			}
		})
	}
}

func TestKeyStoreThatFailsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	keys := &memory{keys: map[string]string{}}
	store := Store{Dir: t.TempDir(), Keys: keys.store()}
	saved(t, store, work)

	keys.fail = errors.New("locked")
	if _, err := store.Load(); err == nil || !strings.Contains(err.Error(), "unlock it") {
		t.Fatalf("locked: %v", err)
	}
	store.Keys = Keys{}
	if _, err := store.Load(); err == nil || !strings.Contains(err.Error(), "log in again") {
		t.Fatalf("gone: %v", err)
	}
	if err := os.WriteFile(store.path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("damaged: %v", err)
	}
}

func TestEnvironmentWins(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("PALIMPSEST_URL", "")
	t.Setenv("PALIMPSEST_KEY", "")
	if _, err := Load(); !errors.Is(err, ErrNone) {
		t.Fatalf("before: %v", err)
	}
	if err := Save(work); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PALIMPSEST_KEY", "pk_env")
	if _, err := Load(); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_URL is not") {
		t.Fatalf("key alone: %v", err)
	}
	t.Setenv("PALIMPSEST_URL", "https://env.example/")
	got, err := Load()
	if want := (Login{Server: "https://env.example", Key: "pk_env"}); err != nil || got != want {
		t.Fatalf("both: %+v, %v", got, err)
	}
	t.Setenv("PALIMPSEST_KEY", "")
	if got, err := Load(); err != nil || got != work {
		t.Fatalf("URL alone: %+v, %v", got, err)
	}
	if err := Delete(); err != nil {
		t.Fatal(err)
	}
}

func saved(t *testing.T, store Store, login Login) {
	t.Helper()
	if err := store.Save(login); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Load(); err != nil || got != login {
		t.Fatalf("loaded %+v, %v", got, err)
	}
}

func content(t *testing.T, store Store) string {
	t.Helper()
	content, err := os.ReadFile(store.path())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
