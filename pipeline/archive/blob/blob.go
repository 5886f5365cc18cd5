package blob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"palimpsest/pipeline/archive"
)

// defaultPrefix is what every name in a bucket begins with unless its URL says
// otherwise.
const defaultPrefix = "evictions"

// maxObject bounds what one object may have, in bytes: a full segment and a large original.
const maxObject = 96 << 20

// Open returns the bucket that a URL names: a directory by file:///path, or a
// bucket of an S3-compatible store by s3://bucket. Both take ?prefix=…; S3 takes
// endpoint and region too, and its key as s3://key:secret@bucket, or else where
// the AWS tools find it. The error never holds the URL: there may be a secret in it.
func Open(ctx context.Context, rawURL string) (archive.Bucket, error) {
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

// known refuses parameters that nothing reads.
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
