package blob

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
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
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &s.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, object := range page.Contents {
			name := strings.TrimPrefix(aws.ToString(object.Key), s.prefix)
			if name == "" || strings.HasSuffix(name, "/") {
				continue // what some stores make for a folder
			}
			if err := each(name); err != nil {
				return err
			}
		}
	}
	return nil
}
