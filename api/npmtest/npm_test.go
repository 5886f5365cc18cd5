package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"palimpsest/pipeline/fulltest"
)

// oneNPM is the reason why a change runs npm in one test, TestSecondInstallationIsFoundInTheCache.
const oneNPM = "each run of npm takes a second of CPU"

// packageBelow puts a package into a folder and returns a list of it for
// installations beside it: npm installs it without a registry.
func packageBelow(t *testing.T, parent string) fstest.MapFS {
	t.Helper()
	folder := filepath.Join(parent, "pen")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"name":"pen","version":"1.2.3","bin":{"write":"write.js"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "write.js"), []byte("#!/usr/bin/env node\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	return fstest.MapFS{
		"package.json": {Data: []byte(`{"name":"desk","private":true,"dependencies":{"pen":"file:../pen"}}`)},
		"package-lock.json": {Data: []byte(`{"name":"desk","lockfileVersion":3,"requires":true,"packages":{
			"":{"name":"desk","dependencies":{"pen":"file:../pen"}},
			"../pen":{"name":"pen","version":"1.2.3","bin":{"write":"write.js"}},
			"node_modules/pen":{"resolved":"../pen","link":true}}}`)},
	}
}

func TestPackagesAreInstalledAsTheLockSays(t *testing.T) {
	fulltest.Only(t, oneNPM)
	t.Parallel()
	parent := t.TempDir()
	directory := filepath.Join(parent, "new")
	if err := Install(t.Context(), packageBelow(t, parent), directory); err != nil {
		t.Fatal(err)
	}

	if version, err := Version(directory, "pen"); err != nil || version != "1.2.3" {
		t.Errorf("version %q, %v", version, err)
	}
	if _, err := os.Stat(Program(directory, "write")); err != nil {
		t.Error(err)
	}
	if _, err := Version(directory, "ink"); err == nil || !strings.Contains(err.Error(), "version of ink") {
		t.Errorf("version of what is not installed: %v", err)
	}
}

func TestLockThatDoesNotFitIsRefused(t *testing.T) {
	fulltest.Only(t, oneNPM)
	t.Parallel()
	source := packageBelow(t, t.TempDir())
	source["package.json"] = &fstest.MapFile{Data: []byte(`{"dependencies":{"pen":"9.9.9"}}`)}

	if err := Install(t.Context(), source, t.TempDir()); err == nil || !strings.Contains(err.Error(), "npm ci") {
		t.Errorf("error %v", err)
	}
}

// registry serves two versions of a package, of which the first is pinned.
func registry(t *testing.T) fstest.MapFS {
	t.Helper()
	packed := map[string][]byte{}
	for _, version := range []string{"1.2.3", "1.3.0"} {
		var archive bytes.Buffer
		zipped := gzip.NewWriter(&archive)
		files := tar.NewWriter(zipped)
		manifest := `{"name":"@desk/pen","version":"` + version + `"}`
		if err := errors.Join(
			files.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(manifest))}),
			func() error { _, err := files.Write([]byte(manifest)); return err }(), files.Close(), zipped.Close(),
		); err != nil {
			t.Fatal(err)
		}
		packed["/pen-"+version+".tgz"] = archive.Bytes()
	}
	var listed []byte // what is known of the package
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if archive, is := packed[r.URL.Path]; is {
			_, _ = w.Write(archive)
			return
		}
		_, _ = w.Write(listed)
	}))
	t.Cleanup(server.Close)
	listed = fmt.Appendf(nil, `{"name":"@desk/pen","dist-tags":{"latest":"1.3.0"},"versions":{
		"1.2.3":{"name":"@desk/pen","version":"1.2.3","dist":{"tarball":"%[1]s/pen-1.2.3.tgz"}},
		"1.3.0":{"name":"@desk/pen","version":"1.3.0","dist":{"tarball":"%[1]s/pen-1.3.0.tgz"}}}}`, server.URL)
	t.Setenv("npm_config_registry", server.URL)
	t.Setenv("npm_config_cache", t.TempDir())

	return fstest.MapFS{"package.json": {Data: []byte(`{"name":"desk","private":true,"dependencies":{"@desk/pen":"1.2.3"}}`)}}
}

func TestNewestVersionsAreInstalledWhereTheyAreAskedFor(t *testing.T) {
	fulltest.Only(t, oneNPM)
	source, directory := registry(t), t.TempDir()
	pinned, err := Pinned(source)
	if err != nil || pinned["@desk/pen"] != "1.2.3" {
		t.Errorf("pinned %v, %v", pinned, err)
	}
	if err := InstallNewest(t.Context(), source, directory); err != nil {
		t.Fatal(err)
	}

	if version, err := Version(directory, "@desk/pen"); err != nil || version != "1.3.0" {
		t.Errorf("version %q, %v", version, err)
	}
}

func TestSecondInstallationIsFoundInTheCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	source := packageBelow(t, filepath.Join(cache, "palimpsest"))
	first, err := Cached(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}

	// Only the lock is needed to find it again.
	delete(source, "package.json")
	second, err := Cached(t.Context(), source)
	if err != nil || second != first || !strings.HasPrefix(first, cache) {
		t.Errorf("%s, then %s: %v", first, second, err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "palimpsest", "installing-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFailedInstallationLeavesNothingInTheCache(t *testing.T) {
	fulltest.Only(t, oneNPM)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	source := packageBelow(t, filepath.Join(cache, "palimpsest"))
	source["package.json"] = &fstest.MapFile{Data: []byte(`{"dependencies":{"pen":"9.9.9"}}`)}
	if _, err := Cached(t.Context(), source); err == nil {
		t.Fatal("installed what does not fit")
	}

	left, err := filepath.Glob(filepath.Join(cache, "palimpsest", "*[0-9]*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissingNodeIsSaidInOneSentence(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Cached(t.Context(), fstest.MapFS{})

	var missing Missing
	if !errors.As(err, &missing) || missing.Program != "node" || !strings.Contains(err.Error(), "apt-get install nodejs npm") {
		t.Errorf("error %v", err)
	}
}
