package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"

	"palimpsest/pipeline/archive"
)

// defaultPrefix is the prefix of every name in a bucket unless its URL has another one.
const defaultPrefix = "evictions"

// maxObject bounds the size of one object, in bytes: a full segment and a large original.
const maxObject = 96 << 20

// Open returns the bucket of a URL: a directory by file:///path, or a bucket of an S3-compatible store by
// s3://bucket. Both take ?prefix=…. S3 also takes endpoint and region, and its key as s3://key:secret@bucket
// or from the places where the AWS tools look. Errors never contain the URL, because it may hold a secret.
func Open(rawURL string) (archive.Bucket, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("is no URL: write file:///dir or s3://bucket?endpoint=https://…")
	}
	query := parsed.Query()
	prefix := defaultPrefix
	if query.Has("prefix") {
		prefix = strings.Trim(query.Get("prefix"), "/")
	}
	if prefix != "" && !filepath.IsLocal(prefix) {
		return nil, errors.New("has a prefix that leads out of the bucket")
	}
	switch parsed.Scheme {
	case "file":
		if err := known(query, "prefix"); err != nil {
			return nil, err
		}
		if parsed.Host != "" || !filepath.IsAbs(parsed.Path) {
			return nil, errors.New("names no absolute path: write file:///dir, with three slashes")
		}
		return NewDirectory(filepath.Join(parsed.Path, filepath.FromSlash(prefix)))
	case "s3":
		if err := known(query, "prefix", "endpoint", "region"); err != nil {
			return nil, err
		}
		return openS3(parsed, prefix)
	default:
		return nil, fmt.Errorf("has the scheme %q; allowed are file and s3", parsed.Scheme)
	}
}

// known rejects unknown parameters.
func known(query url.Values, names ...string) error {
	for name := range query {
		found := false
		for _, allowed := range names {
			found = found || name == allowed
		}
		if !found {
			return fmt.Errorf("has the parameter %q; allowed are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Names implements archive.Bucket.
func (d *Directory) Names(ctx context.Context, each func(name string) error) error {
	return filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if entry.IsDir() || strings.HasPrefix(entry.Name(), temporaryPrefix) {
			return nil
		}
		name, err := filepath.Rel(d.root, path)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(name))
	})
}

// Names implements archive.Bucket.
func (s *S3) Names(ctx context.Context, each func(name string) error) error {
	objects := s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true})
	for object := range objects {
		if object.Err != nil {
			return object.Err
		}
		name := strings.TrimPrefix(object.Key, s.prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue // some stores make these for folders
		}
		if err := each(name); err != nil {
			return err
		}
	}
	return ctx.Err() // a canceled list is short and has no error of its own
}
