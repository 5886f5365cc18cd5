package export_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
)

// bundle returns a bundle of a session and of what is beside it.
func bundle(t *testing.T) []byte {
	t.Helper()
	m, session := setup()
	var out bytes.Buffer
	b := export.NewBundle(&out, session.Workspace, at(0))
	if err := b.JSON("workspace.json", map[string]string{"name": "northbeam"}); err != nil {
		t.Fatal(err)
	}
	err := b.SessionFile(session.ID, func(w io.Writer) error {
		writer := export.NewWriter(w)
		if err := writer.Session(t.Context(), m, session); err != nil {
			return err
		}
		return writer.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func verifyBundle(t *testing.T, file []byte) (export.BundleTotals, []string) {
	t.Helper()
	var faults []string
	totals, err := export.VerifyBundle(bytes.NewReader(file), func(fault export.Fault) { faults = append(faults, fault.String()) })
	if err != nil {
		t.Fatal(err)
	}
	if totals.Faults != len(faults) {
		t.Errorf("%d faults are counted, %d reported", totals.Faults, len(faults))
	}
	return totals, faults
}

// entry is a file of a tar.
type entry struct {
	name    string
	content []byte
}

func untar(t *testing.T, file []byte) []entry {
	t.Helper()
	var entries []entry
	reader := tar.NewReader(bytes.NewReader(file))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{header.Name, content})
	}
}

func retar(t *testing.T, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, e := range entries {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// S31: an export of everything is verified without us.
func TestABundleVerifies(t *testing.T) {
	t.Parallel()
	file := bundle(t)
	totals, faults := verifyBundle(t, file)
	if len(faults) != 0 || totals.Files != 2 || totals.Sessions != 1 || totals.Messages == 0 || len(totals.SHA256) != 64 {
		t.Fatalf("%+v, faults %v", totals, faults)
	}
	if !export.IsBundle(bufio.NewReader(bytes.NewReader(file))) {
		t.Error("a bundle is not taken for one")
	}
	for _, other := range []string{"", "{}\n", strings.Repeat("x", 4096)} {
		if export.IsBundle(bufio.NewReader(strings.NewReader(other))) {
			t.Errorf("%.10q is taken for a bundle", other)
		}
	}
}

// S31
func TestEveryChangeOfABundleIsNoticed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(entries []entry) []entry
		want string
	}{
		"a file changed": {func(e []entry) []entry {
			e[0].content = bytes.Replace(e[0].content, []byte("northbeam"), []byte("southbeam"), 1)
			return e
		}, "workspace.json has the SHA-256"},
		"a session changed": {func(e []entry) []entry {
			e[1].content = bytes.Replace(e[1].content, []byte(`"text":"`), []byte(`"text":"!`), 1)
			return e
		}, e1Prefix},
		"a file missing":     {func(e []entry) []entry { return e[1:] }, "stands where the manifest has workspace.json"},
		"the last missing":   {func(e []entry) []entry { return []entry{e[0], e[2]} }, "is missing"},
		"a file added":       {func(e []entry) []entry { return []entry{e[0], e[1], {"x.json", nil}, e[2]} }, "x.json is not in the manifest"},
		"one behind the end": {func(e []entry) []entry { return append(e, entry{"x.json", nil}) }, "x.json stands behind the manifest"},
		"another order":      {func(e []entry) []entry { return []entry{e[1], e[0], e[2]} }, "stands where the manifest has"},
		"no manifest":        {func(e []entry) []entry { return e[:2] }, "there is no manifest"},
		"a broken manifest":  {func(e []entry) []entry { e[2].content = []byte("{"); return e }, "the manifest cannot be read"},
		"a manifest of later": {func(e []entry) []entry {
			e[2].content = bytes.Replace(e[2].content, []byte(`"palimpsest_bundle": 1`), []byte(`"palimpsest_bundle": 2`), 1)
			return e
		}, "has version 2"},
	} {
		_, faults := verifyBundle(t, retar(t, test.edit(untar(t, bundle(t)))))
		if !strings.Contains(strings.Join(faults, "\n"), test.want) {
			t.Errorf("%s: %v, want %q", name, faults, test.want)
		}
	}
}

const e1Prefix = "sessions/"

func TestABundleThatIsCutAnywhereIsFaulty(t *testing.T) {
	t.Parallel()
	file := bundle(t)
	end := len(bytes.TrimRight(file, "\x00")) // a tar ends with empty blocks
	for cut := 1; cut < end; cut += 97 {
		if _, faults := verifyBundle(t, file[:cut]); len(faults) == 0 {
			t.Fatalf("cut at %d of %d bytes, nothing is found wrong", cut, len(file))
		}
	}
}

func TestABundleWhoseSourceFailsIsNotWhole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := export.NewBundle(&out, tenants.NewWorkspaceID(), at(0))
	failed := errors.New("the source failed")
	if err := b.File("x", func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Fatalf("%v", err)
	}
	if _, faults := verifyBundle(t, out.Bytes()); len(faults) == 0 {
		t.Error("nothing is found wrong")
	}
}
