package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"palimpsest/pipeline/archive"
)

const (
	amazon = "s3.amazonaws.com"
	// defaultRegion is the region that stores without regions expect.
	defaultRegion = "us-east-1"
	// tries is the number of attempts at one operation. Callers retry later on their own.
	tries = 2
)

// S3 is a bucket of an S3-compatible store.
type S3 struct {
	client *minio.Core
	bucket string
	prefix string // ends in a slash, or is empty
}

func openS3(parsed *url.URL, prefix string) (*S3, error) {
	if parsed.Host == "" || parsed.Path != "" && parsed.Path != "/" {
		return nil, errors.New("names no bucket: write s3://bucket?endpoint=https://…")
	}
	query := parsed.Query()
	options := &minio.Options{Region: query.Get("region"), MaxRetries: tries, Secure: true}
	if options.Region == "" {
		options.Region = defaultRegion
	}
	options.Creds = credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Region: options.Region},
	})
	if parsed.User != nil {
		secret, _ := parsed.User.Password()
		options.Creds = credentials.NewStaticV4(parsed.User.Username(), secret, "")
	}
	host := amazon
	if endpoint := query.Get("endpoint"); endpoint != "" {
		base, err := url.Parse(endpoint)
		if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || strings.Trim(base.Path, "/") != "" {
			return nil, errors.New("has an endpoint that is not an http or https URL without a path")
		}
		host, options.Secure = base.Host, base.Scheme == "https"
		options.BucketLookup = minio.BucketLookupPath // a hostname for each bucket is specific to Amazon
	}
	client, err := minio.NewCore(host, options)
	if err != nil {
		return nil, fmt.Errorf("S3 configuration: %w", err)
	}
	client.SetS3EnableDualstack(false)
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, bucket: parsed.Host, prefix: prefix}, nil
}

// Put stores bytes under a name. It returns archive.ErrTaken if the name is in use.
func (s *S3) Put(ctx context.Context, name string, content []byte) error {
	// Not every compatible store supports the newer checksums or a body signed in parts.
	options := minio.PutObjectOptions{DisableContentSha256: true}
	options.SetMatchETagExcept("*")
	sum := sha256.Sum256(content)
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(content), int64(len(content)), "", hex.EncodeToString(sum[:]), options)
	if status(err) == http.StatusPreconditionFailed {
		return fmt.Errorf("write %s: %w", name, archive.ErrTaken)
	}
	return err
}

// Get returns the bytes under a name, or archive.ErrNotFound.
func (s *S3) Get(ctx context.Context, name string) ([]byte, error) {
	body, _, _, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if isMissing(err) {
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, maxObject+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > maxObject {
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", name, archive.ErrDamaged, maxObject)
	}
	return content, nil
}

// Range returns length bytes of an object from an offset. It returns archive.ErrNotFound if the object is
// absent, or archive.ErrDamaged if it is too short.
func (s *S3) Range(ctx context.Context, name string, offset, length int) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(int64(offset), int64(offset+length-1)); err != nil {
		return nil, err
	}
	body, object, header, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, options)
	switch {
	case isMissing(err):
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	case status(err) == http.StatusRequestedRangeNotSatisfiable:
		return nil, fmt.Errorf("read %s: %w: it ends before byte %d", name, archive.ErrDamaged, offset)
	case err != nil:
		return nil, err
	}
	defer body.Close()
	if header.Get("Content-Range") == "" { // a store without range support sends the whole object
		if _, err := io.CopyN(io.Discard, body, int64(offset)); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	} else if object.Size < int64(length) {
		return nil, fmt.Errorf("read %s: %w: it ends before byte %d", name, archive.ErrDamaged, offset+length)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(body, content); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

// Delete removes an object. A missing object is no error.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{})
	if isMissing(err) {
		return nil
	}
	return err
}

// isMissing reports whether err says that the object does not exist. A missing bucket does not count, so that
// objects don't appear lost because of a typing error.
func isMissing(err error) bool {
	failure, is := errors.AsType[minio.ErrorResponse](err)
	return is && failure.StatusCode == http.StatusNotFound && failure.Code != minio.NoSuchBucket
}

// status returns the HTTP status of a failed answer, or 0 without an answer.
func status(err error) int {
	failure, _ := errors.AsType[minio.ErrorResponse](err)
	return failure.StatusCode
}

var _ archive.Bucket = (*S3)(nil)
