package blob

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"palimpsest/pipeline/archive"
)

// Listed is a bucket that can say what it holds, which backups need and nothing else.
type Listed interface {
	archive.Bucket

	// Names calls each with every object's name. What is stored or deleted meanwhile may be
	// named or not. It ends at the first error of each and returns that.
	Names(ctx context.Context, each func(name string) error) error
}

// Names implements Listed.
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

// Names implements Listed.
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

var (
	_ Listed = (*Directory)(nil)
	_ Listed = (*S3)(nil)
)
