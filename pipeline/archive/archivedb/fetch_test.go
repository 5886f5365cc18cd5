package archivedb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
)

// silentBucket takes requests and never answers one.
type silentBucket struct{ archive.Bucket }

func (silentBucket) Range(ctx context.Context, _ string, _, _ int) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A bucket that says nothing is away, as one that cannot be reached; who asks no longer is told no such thing.
func TestBucketThatSaysNothingIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := archivedb.FetchOne(t.Context(), silentBucket{}); !errors.Is(err, archive.ErrAway) {
			t.Errorf("%v, want %v", err, archive.ErrAway)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s to tell", took)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := archivedb.FetchOne(gone, silentBucket{}); errors.Is(err, archive.ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a second to wait: %v", err)
		}
	})
}
