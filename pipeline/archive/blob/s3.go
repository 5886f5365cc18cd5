package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"palimpsest/pipeline/archive"
)

const (
	// defaultRegion is what stores that have no regions expect.
	defaultRegion = "us-east-1"
	// tries is how often one operation is tried: anyone who asks tries again later.
	tries = 2
)

// S3 is a bucket of an S3-compatible store.
type S3 struct {
	client *s3.Client
	bucket string
	prefix string // with a slash at its end, or empty
}

func openS3(ctx context.Context, parsed *url.URL, prefix string) (*S3, error) {
	if parsed.Host == "" || parsed.Path != "" && parsed.Path != "/" {
		return nil, errors.New("names no bucket: write s3://bucket?endpoint=https://…")
	}
	query := parsed.Query()
	region := query.Get("region")
	if region == "" {
		region = defaultRegion
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(region)}
	if parsed.User != nil {
		secret, _ := parsed.User.Password()
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(parsed.User.Username(), secret, "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("S3 configuration: %w", err)
	}
	endpoint := query.Get("endpoint")
	if endpoint != "" {
		if base, err := url.Parse(endpoint); err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
			return nil, errors.New("has an endpoint that is not an http or https URL")
		}
	}
	client := s3.NewFromConfig(loaded, func(options *s3.Options) {
		if endpoint != "" {
			options.BaseEndpoint = &endpoint
			options.UsePathStyle = true // a name for each bucket is Amazon's own habit
		}
		options.RetryMaxAttempts = tries
		// Not every compatible store knows the newer checksums; what was
		// written is read back instead.
		options.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		options.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, bucket: parsed.Host, prefix: prefix}, nil
}

// Put stores bytes under a name. It returns archive.ErrTaken if something is
// stored under the name.
func (s *S3) Put(ctx context.Context, name string, content []byte) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + name), Body: bytes.NewReader(content),
		ContentLength: aws.Int64(int64(len(content))), IfNoneMatch: aws.String("*"),
	})
	if status(err) == http.StatusPreconditionFailed {
		return fmt.Errorf("write %s: %w", name, archive.ErrTaken)
	}
	return err
}

// Get returns the bytes under a name, or archive.ErrNotFound.
func (s *S3) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + name)})
	if isMissing(err) {
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer object.Body.Close()
	content, err := io.ReadAll(io.LimitReader(object.Body, maxObject+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > maxObject {
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", name, archive.ErrDamaged, maxObject)
	}
	return content, nil
}

// Range returns so many bytes from an offset of what is under a name, archive.ErrNotFound, or
// archive.ErrDamaged where there are not as many.
func (s *S3) Range(ctx context.Context, name string, offset, length int) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	object, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + name), Range: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)),
	})
	switch {
	case isMissing(err):
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	case status(err) == http.StatusRequestedRangeNotSatisfiable:
		return nil, fmt.Errorf("read %s: %w: it ends before byte %d", name, archive.ErrDamaged, offset)
	case err != nil:
		return nil, err
	}
	defer object.Body.Close()
	if object.ContentRange == nil { // a store that knows no ranges sends all of it
		if _, err := io.CopyN(io.Discard, object.Body, int64(offset)); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	} else if ends := aws.ToInt64(object.ContentLength); ends < int64(length) {
		return nil, fmt.Errorf("read %s: %w: it ends before byte %d", name, archive.ErrDamaged, offset+length)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(object.Body, content); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

// Delete removes what is under a name; it is no error if there is nothing.
func (s *S3) Delete(ctx context.Context, name string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + name)})
	if isMissing(err) {
		return nil
	}
	return err
}

// isMissing reports whether err says that there is no such object. A missing
// bucket is another matter: nothing must look lost because of a typing error.
func isMissing(err error) bool {
	var failure smithy.APIError
	return status(err) == http.StatusNotFound && errors.As(err, &failure) && failure.ErrorCode() != "NoSuchBucket"
}

// status returns the HTTP status of a failed answer; 0 if there was no answer.
func status(err error) int {
	var failure *smithyhttp.ResponseError
	if !errors.As(err, &failure) {
		return 0
	}
	return failure.HTTPStatusCode()
}

var _ archive.Bucket = (*S3)(nil)
