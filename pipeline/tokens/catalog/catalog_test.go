package catalog_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/tokens/catalog"
)

// publisher signs catalogs and serves them.
type publisher struct {
	secret ed25519.PrivateKey
	server *httptest.Server
	files  map[string][]byte
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{secret: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), files: map[string][]byte{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, has := p.files[r.URL.Path]
		if !has {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// publish serves a catalog of a day with one model.
func (p *publisher) publish(day, model string) {
	content := []byte(`{"version":1,"date":"` + day + `","sources":{"s":"https://example.com"},"prefixes":[],"tools":[],"models":[
		{"name":"` + model + `","family":"f","provider":"p","window":64000,"price":{"input":1,"output":2},"source":"s","date":"2026-11-29"}]}`)
	p.files["/models.json"] = content
	p.files["/models.json.sig"] = []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(p.secret, content)) + "\n")
}

// source returns a place of the publisher's with models of its own.
func (p *publisher) source(t *testing.T, kept string) (catalog.Source, *bytes.Buffer) {
	t.Helper()
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return catalog.Source{
		Place: p.server.URL + "/models.json?token=secret", Key: p.secret.Public().(ed25519.PublicKey), Kept: kept,
		Models: models, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, &log
}

// W52: a signed catalog replaces the built-in one, and the last good one holds while a newer one is
// bad, forged, older, or out of reach, also after a start.
func TestOnlyAGoodCatalogReplacesTheOneThatHolds(t *testing.T) {
	t.Parallel()
	p, kept := newPublisher(t), filepath.Join(t.TempDir(), "catalog.json")
	p.publish("2027-01-01", "gpt-8")
	source, log := p.source(t, kept)
	stop := source.Start()
	defer stop()
	if !source.Models.Lookup("gpt-8").Known || source.Models.Lookup("gpt-4o").Known {
		t.Fatalf("the catalog was not replaced: %s", log)
	}
	for fault, spoil := range map[string]func(){
		"isn't signed":     func() { p.files["/models.json"] = append(p.files["/models.json"], ' ') },
		"has version 2":    func() { p.sign(strings.Replace(string(p.files["/models.json"]), `"version":1`, `"version":2`, 1)) },
		"older than":       func() { p.publish("2026-12-31", "gpt-9") },
		"status 404":       func() { delete(p.files, "/models.json.sig") },
		"not a catalog":    func() { p.sign("<html>") },
		"isn't signed by":  func() { p.files["/models.json.sig"] = []byte("no base64") },
		"has more than 10": func() { p.files["/models.json.sig"] = bytes.Repeat([]byte("a"), 2000) },
	} {
		p.publish("2027-02-01", "gpt-9")
		spoil()
		if err := source.Load(t.Context()); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: the error is %v", fault, err)
		}
		if !source.Models.Lookup("gpt-8").Known || source.Models.Lookup("gpt-9").Known {
			t.Errorf("%s: the catalog that held is gone", fault)
		}
	}

	p.server.Close()
	again, log := p.source(t, kept)
	stopAgain := again.Start()
	defer stopAgain()
	if !again.Models.Lookup("gpt-8").Known || !strings.Contains(log.String(), "wasn't loaded") || strings.Contains(log.String(), "secret") {
		t.Errorf("the last good one does not hold after a start: %s", log)
	}
	if err := os.WriteFile(kept, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, log := p.source(t, kept)
	stopThird := third.Start()
	defer stopThird()
	if !third.Models.Lookup("gpt-4o").Known || !strings.Contains(log.String(), "the built-in one is") {
		t.Errorf("without a good one the built-in one does not hold: %s", log)
	}
}

func (p *publisher) sign(content string) {
	p.files["/models.json"] = []byte(content)
	p.files["/models.json.sig"] = []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(p.secret, []byte(content))))
}

func TestCatalogIsReadFromAFile(t *testing.T) {
	t.Parallel()
	p, place := newPublisher(t), filepath.Join(t.TempDir(), "mine.json")
	p.publish("2027-01-01", "gpt-8")
	for name, content := range map[string][]byte{place: p.files["/models.json"], place + ".sig": p.files["/models.json.sig"]} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, _ := p.source(t, "")
	source.Place = place
	if err := source.Load(t.Context()); err != nil || !source.Models.Lookup("gpt-8").Known {
		t.Errorf("not read: %v", err)
	}
	source.Place = place + ".not"
	if err := source.Load(t.Context()); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestPublicKeysAreReadAsPeopleHaveThem(t *testing.T) {
	t.Parallel()
	public := newPublisher(t).secret.Public().(ed25519.PublicKey)
	long, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range [][]byte{public, long} {
		if key, err := catalog.ParseKey(base64.StdEncoding.EncodeToString(content) + "\n"); err != nil || !key.Equal(public) {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
	for _, wrong := range []string{"", "no key", base64.StdEncoding.EncodeToString(public[:31])} {
		if _, err := catalog.ParseKey(wrong); err == nil {
			t.Errorf("%q is taken for a key", wrong)
		}
	}
	for place, want := range map[string]bool{"/etc/models.json": true, "https://example.com/models.json": true, "models.json": false, "ftp://example.com/m": false, "https://": false, "": false} {
		if catalog.IsPlace(place) != want {
			t.Errorf("%q: want %t", place, want)
		}
	}
}
