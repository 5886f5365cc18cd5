package static_test

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palimpsest/static"
)

func get(t *testing.T, url string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	static.Handler().ServeHTTP(recorder, request)
	return recorder.Result()
}

func TestURLChangesWithContentAndIsKeptForAYear(t *testing.T) {
	t.Parallel()

	url := static.URL("css/app.css")
	if !regexp.MustCompile(`^/static/css/app\.[0-9a-f]{16}\.css$`).MatchString(url) {
		t.Fatalf("URL is %s", url)
	}
	response := get(t, url)
	if response.StatusCode != http.StatusOK || response.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
		t.Errorf("status %d, Cache-Control %q", response.StatusCode, response.Header.Get("Cache-Control"))
	}
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/css") {
		t.Errorf("Content-Type is %q", got)
	}
	again := get(t, url, "If-None-Match", response.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("with its ETag the status is %d", again.StatusCode)
	}
}

func TestUnhashedAndUnknownNamesAreNotServed(t *testing.T) {
	t.Parallel()

	for _, url := range []string{"/static/css/app.css", "/static/css/app.0000000000000000.css", "/static/", "/static/../static.go"} {
		if response := get(t, url); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", url, response.StatusCode)
		}
	}
}

func TestTextIsZippedForBrowsersThatAcceptIt(t *testing.T) {
	t.Parallel()

	url := static.URL("js/app.js")
	plain, err := io.ReadAll(get(t, url).Body)
	if err != nil {
		t.Fatal(err)
	}
	response := get(t, url, "Accept-Encoding", "br, gzip")
	if response.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("not zipped")
	}
	reader, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := io.ReadAll(reader)
	if err != nil || string(unzipped) != string(plain) {
		t.Errorf("unzipped %d bytes differ from %d plain ones: %v", len(unzipped), len(plain), err)
	}
}

func TestStyleSheetNamesFontsThatAreServed(t *testing.T) {
	t.Parallel()

	sheet, err := io.ReadAll(get(t, static.URL("css/app.css")).Body)
	if err != nil {
		t.Fatal(err)
	}
	fonts := regexp.MustCompile(`url\("([^"]+\.woff2)"\)`).FindAllStringSubmatch(string(sheet), -1)
	if len(fonts) != 4 {
		t.Fatalf("the sheet names %d fonts, want 4", len(fonts))
	}
	for _, font := range fonts {
		response := get(t, font[1])
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "font/woff2" {
			t.Errorf("%s: status %d, %s", font[1], response.StatusCode, response.Header.Get("Content-Type"))
		}
	}
}

func TestUnknownNameIsAProgrammersError(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("URL of a file that does not exist did not panic")
		}
	}()
	static.URL("css/none.css")
}

// The files that others wrote are those whose sums were noted when they were
// taken over, and each comes with its license.
func TestVendoredFilesHaveTheirNotedSums(t *testing.T) {
	t.Parallel()

	sums, err := os.Open("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	noted := map[string]string{}
	lines := bufio.NewScanner(sums)
	for lines.Scan() {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		noted[name] = sum
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}

	licensed := map[string]bool{}
	err = filepath.WalkDir("vendor", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "SHA256SUMS" {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, "vendor"+string(filepath.Separator)))
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		if noted[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s does not have its noted sum", name)
		}
		delete(noted, name)
		library, _, _ := strings.Cut(name, "/")
		licensed[library] = licensed[library] || entry.Name() == "LICENSE"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range noted {
		t.Errorf("%s is noted and missing", name)
	}
	for library, has := range licensed {
		if !has {
			t.Errorf("%s has no license", library)
		}
	}
	if len(licensed) < 5 {
		t.Errorf("found %d libraries", len(licensed))
	}
}

// A page loads one sheet and one script, with each of our files once, in an order that works.
func TestOneSheetAndOneScriptHoldEveryFileOnce(t *testing.T) {
	t.Parallel()
	for pattern, bundle := range map[string]struct{ url, first string }{
		"css/*.css": {static.Sheet(), "css/app.css"}, "js/*.js": {static.Script(), "js/chart.js"},
	} {
		whole, err := io.ReadAll(get(t, bundle.url).Body)
		if err != nil {
			t.Fatal(err)
		}
		content := func(name string) string {
			body, err := io.ReadAll(get(t, static.URL(name)).Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 5 {
			t.Fatalf("%d files, %v", len(names), err)
		}
		begins := strings.Index(string(whole), content(bundle.first))
		for _, name := range names {
			want := 1
			if name == "js/theme.js" {
				want = 0
			}
			if got := strings.Count(string(whole), content(name)); got != want {
				t.Errorf("%s is %d times in %s, want %d", name, got, bundle.url, want)
			}
			if at := strings.Index(string(whole), content(name)); want == 1 && at < begins {
				t.Errorf("%s comes before %s", name, bundle.first)
			}
		}
	}
}
