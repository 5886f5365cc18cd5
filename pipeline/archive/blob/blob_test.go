package blob_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/blob"
)

// buckets returns a new bucket of each kind.
func buckets(t *testing.T) map[string]archive.Bucket {
	t.Helper()
	all := map[string]archive.Bucket{}
	for kind, url := range map[string]string{"directory": "file://" + t.TempDir() + "/new/folders", "S3": store(t)} {
		bucket, err := blob.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		all[kind] = bucket
	}
	return all
}

// each runs a test with every kind of bucket.
func each(t *testing.T, test func(t *testing.T, bucket archive.Bucket)) {
	t.Helper()
	for kind, bucket := range buckets(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, bucket)
		})
	}
}

const name = "0191d5a0-0000-7000-8000-000000000001/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestStoredObjectCanBeReadAndDeleted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, bucket archive.Bucket) {
		t.Helper()
		large := make([]byte, 3<<20)
		_, _ = rand.Read(large)
		for i, content := range [][]byte{[]byte("{}"), {}, []byte("\x00\xff\n"), large} {
			at := fmt.Sprint(name, i)
			if _, err := bucket.Get(t.Context(), at); !errors.Is(err, archive.ErrNotFound) {
				t.Errorf("before: %v, want archive.ErrNotFound", err)
			}
			if err := bucket.Put(t.Context(), at, content); err != nil {
				t.Fatal(err)
			}
			got, err := bucket.Get(t.Context(), at)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(content))
			}
			for range 2 {
				if err := bucket.Delete(t.Context(), at); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
			if _, err := bucket.Get(t.Context(), at); !errors.Is(err, archive.ErrNotFound) {
				t.Errorf("after: %v, want archive.ErrNotFound", err)
			}
		}
	})
}

// S22
func TestNothingIsEverOverwritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, bucket archive.Bucket) {
		t.Helper()
		if err := bucket.Put(t.Context(), name, []byte("first")); err != nil {
			t.Fatal(err)
		}
		if err := bucket.Put(t.Context(), name, []byte("second")); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("got %v, want archive.ErrTaken", err)
		}
		if got, err := bucket.Get(t.Context(), name); err != nil || string(got) != "first" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// S22
func TestOnlyOneOfManyWritersWins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, bucket archive.Bucket) {
		t.Helper()
		var writers sync.WaitGroup
		results := make(chan error, 16)
		for writer := range cap(results) {
			writers.Go(func() {
				results <- bucket.Put(context.WithoutCancel(t.Context()), name, bytes.Repeat([]byte{byte('a' + writer)}, 10_000))
			})
		}
		writers.Wait()
		close(results)
		won := 0
		for err := range results {
			if err == nil {
				won++
			} else if !errors.Is(err, archive.ErrTaken) {
				t.Errorf("got %v, want archive.ErrTaken", err)
			}
		}
		got, err := bucket.Get(t.Context(), name)
		if won != 1 || err != nil || len(got) != 10_000 || strings.Trim(string(got), string(got[:1])) != "" {
			t.Errorf("%d writers won and %d bytes are stored, %v", won, len(got), err)
		}
	})
}

func TestADirectoryLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := bucket.Put(t.Context(), "w/object", []byte("x")); err != nil && !errors.Is(err, archive.ErrTaken) {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "w", "*"))
	hidden, _ := filepath.Glob(filepath.Join(root, "w", ".*"))
	if err != nil || len(files) != 1 || len(hidden) != 0 {
		t.Errorf("the directory holds %v and %v, %v", files, hidden, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	for _, outside := range []string{"../object", "/etc/passwd", "a/../../object", ""} {
		if err := bucket.Put(t.Context(), outside, nil); err == nil {
			t.Errorf("%q was written", outside)
		}
		if _, err := bucket.Get(t.Context(), outside); err == nil || errors.Is(err, archive.ErrNotFound) {
			t.Errorf("%q was looked for: %v", outside, err)
		}
	}
}

func TestObjectsLieBelowThePrefix(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for query, folder := range map[string]string{"": "evictions", "?prefix=kept/here": "kept/here", "?prefix=": ""} {
		bucket, err := blob.Open("file://" + root + query)
		if err != nil {
			t.Fatal(err)
		}
		if err := bucket.Put(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(root, folder, name)); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	}
}

func TestAWrongURLIsExplainedWithoutItsSecret(t *testing.T) {
	t.Parallel()
	for url, says := range map[string]string{
		"":                              "scheme",
		"gs://bucket":                   "scheme",
		"file://relative/path":          "three slashes",
		"file:///x?endpoint=http://y":   "endpoint",
		"file:///x?prefix=../..":        "prefix",
		"s3://":                         "no bucket",
		"s3://bucket/folder":            "no bucket",
		"s3://k:hunter2@b?endpoint=xyz": "endpoint",
		"s3://k:hunter2@b?acl=public":   "acl",
		"s3://k:hunter2@b\x7f":          "no URL",
	} {
		_, err := blob.Open(url)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want an error that says %q", url, err, says)
		}
	}
}

func TestAMissingBucketIsNoMissingObject(t *testing.T) {
	t.Parallel()
	bucket, err := blob.Open(strings.Replace(store(t), "originals", "typo", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Get(t.Context(), name); err == nil || errors.Is(err, archive.ErrNotFound) {
		t.Errorf("get: %v, want another error than archive.ErrNotFound", err)
	}
	if err := bucket.Put(t.Context(), name, nil); err == nil || errors.Is(err, archive.ErrTaken) {
		t.Errorf("put: %v, want another error than archive.ErrTaken", err)
	}
}

func TestPartsOfAnObjectAreRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, bucket archive.Bucket) {
		t.Helper()
		content := make([]byte, 100_000)
		_, _ = rand.Read(content)
		if _, err := bucket.Range(t.Context(), name, 0, 1); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("before: %v, want archive.ErrNotFound", err)
		}
		if err := bucket.Put(t.Context(), name, content); err != nil {
			t.Fatal(err)
		}
		for _, part := range [][2]int{{0, 1}, {0, len(content)}, {12_345, 54_321}, {len(content) - 1, 1}, {7, 0}} {
			got, err := bucket.Range(t.Context(), name, part[0], part[1])
			if err != nil || !bytes.Equal(got, content[part[0]:part[0]+part[1]]) {
				t.Errorf("%d bytes from %d: got %d, %v", part[1], part[0], len(got), err)
			}
		}
		for _, part := range [][2]int{{len(content) - 1, 2}, {len(content), 1}, {len(content) + 10, 10}} {
			if got, err := bucket.Range(t.Context(), name, part[0], part[1]); !errors.Is(err, archive.ErrDamaged) || got != nil {
				t.Errorf("%d bytes from %d: got %d, %v, want archive.ErrDamaged", part[1], part[0], len(got), err)
			}
		}
	})
}

func TestABucketNamesWhatItHolds(t *testing.T) {
	t.Parallel()
	for kind, url := range map[string]string{"directory": "file://" + t.TempDir(), "S3": store(t), "S3 without a prefix": store(t) + "&prefix="} {
		bucket, err := blob.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for i := range 12 {
			at := fmt.Sprintf("w%d/%s%d", i%3, name, i)
			want[at] = true
			if err := bucket.Put(t.Context(), at, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]bool{}
		err = bucket.Names(t.Context(), func(name string) error {
			got[name] = true
			content, err := bucket.Get(t.Context(), name)
			if err == nil && string(content) != "x" {
				err = fmt.Errorf("%s holds %q", name, content)
			}
			return err
		})
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
		full := errors.New("full")
		calls := 0
		if err := bucket.Names(t.Context(), func(string) error { calls++; return full }); !errors.Is(err, full) || calls != 1 {
			t.Errorf("%s: %d calls, %v", kind, calls, err)
		}
	}
}
