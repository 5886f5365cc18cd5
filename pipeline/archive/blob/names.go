package blob

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
)

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
